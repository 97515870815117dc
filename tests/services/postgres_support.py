"""A private PostgreSQL for tests of the store."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class PrivatePostgres:
    """A PostgreSQL in a folder, which listens on a socket file only. Root runs it as `postgres`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        self.url = f"postgresql://grid@/postgres?host={folder}"
        if self._as:
            shutil.chown(folder, "postgres", "postgres")
        self._run("initdb", "-A", "trust", "-U", "grid", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        options = f"-k {self._folder} -c listen_addresses= -c fsync=off"
        self._run("pg_ctl", "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *words: str) -> None:
        command = [*self._as, str(self._programs / program), "-D", str(self._folder / "data"), *words]
        subprocess.run(command, check=True, cwd=self._folder, stdout=subprocess.DEVNULL)


@contextmanager
def stoppable_postgres() -> Iterator[PrivatePostgres]:
    """Yield a private PostgreSQL that runs, and that a test may stop and start."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="dg-pg-"))
    try:
        postgres = PrivatePostgres(found[-1].parent, folder)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def private_postgres() -> Iterator[str]:
    """Yield the URL of a private PostgreSQL."""
    with stoppable_postgres() as postgres:
        yield postgres.url
