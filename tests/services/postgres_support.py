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


@contextmanager
def private_postgres() -> Iterator[str]:
    """URL of a private PostgreSQL that listens on a socket file only."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    bin_dir, folder = found[-1].parent, Path(tempfile.mkdtemp(prefix="dg-pg-"))
    run = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []

    def command(*words: str) -> None:
        subprocess.run([*run, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL)

    try:
        if run:
            shutil.chown(folder, "postgres", "postgres")
        data = str(folder / "data")
        command(str(bin_dir / "initdb"), "-D", data, "-A", "trust", "-U", "grid", "-E", "UTF8", "--no-sync")
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        command(str(bin_dir / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://grid@/postgres?host={folder}"
        finally:
            command(str(bin_dir / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
