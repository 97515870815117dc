"""The grid's own PostgreSQL server: loopback only, one password, data under the state folder.

PostgreSQL refuses to run as root. For root it runs as Debian's account `postgres`, with one capability: to enter
closed folders, because a checkout may be below one.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import read_or_create, replace_file
from deployments.onemachine.daemons.probes import HOST
from deployments.onemachine.daemons.processes import Daemon, options

ACCOUNT = "postgres"
# Numbers of the capabilities that let a process enter closed folders, the weaker one first.
PASSAGES = {"dac_read_search": 2, "dac_override": 1}
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",  # a socket's path has at most 108 bytes, and a checkout may be deep
    "synchronous_commit": "off",  # a crash may lose the last moment of Prefect's history, but never consistency
    "max_connections": "200",
    "logging_collector": "off",
}
SHARED_MEMORY = 6  # line of the lock file with key and id of the server's shared memory
ORPHANS_LEAVE_WITHIN_S = 30.0
POLL_S = 0.05


@dataclass(frozen=True)
class Postgres:
    """The server with its data in `folder`/data. Call `prepare` before `daemon` starts."""

    folder: Path
    port: int

    def prepare(self) -> None:
        """Create the password and the data folder at the first call. The server must not run.

        Raises ConfigurationError with the output of initdb.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        read_or_create(self._password_file, lambda: secrets.token_hex(16))
        if not self._data.exists():
            self._create_data()
        self._until_orphans_left()
        self._drop_stale_lock()

    def daemon(self) -> Daemon:
        """Return the server's process. It is ready when it accepts connections."""
        settings = [f"{name}={value}" for name, value in {**SETTINGS, "port": str(self.port)}.items()]
        argv = [self._binary("postgres"), "-D", str(self._data), *(part for one in settings for part in ("-c", one))]
        return Daemon("postgres", as_account(argv), ready=self._is_ready, stop_signal=signal.SIGINT)

    def create_database(self, name: str) -> None:
        """Create a database unless it exists, and switch its JIT compiler off. The server must be ready.

        With it, Prefect's query for the diagram of a run takes more than 7 s, and the UI shows an error.
        """
        argv = [self._binary("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--set=name={name}"]
        argv += [*options(host=HOST, port=self.port, username=ACCOUNT), "postgres"]
        statements = (
            "SELECT format('CREATE DATABASE %I', :'name')"
            " WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec\n"
            'ALTER DATABASE :"name" SET jit = off;'
        )
        env = {**os.environ, "PGPASSWORD": self._password}
        done = subprocess.run(argv, input=statements, env=env, capture_output=True, text=True, cwd="/", check=False)
        if done.returncode:
            raise ConfigurationError(f"PostgreSQL did not create the database {name}: {done.stderr.strip()}")

    def url(self, database: str) -> str:
        """Return the URL of a database for SQLAlchemy with asyncpg. It contains the password: never log it."""
        return f"postgresql+asyncpg://{ACCOUNT}:{self._password}@{HOST}:{self.port}/{database}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _lock(self) -> Path:
        return self._data / "postmaster.pid"

    @property
    def _password_file(self) -> Path:
        return self.folder / "password"

    @cached_property
    def _password(self) -> str:
        return self._password_file.read_text()

    def _create_data(self) -> None:
        """Run initdb under another folder name first, so that an interrupted run leaves no complete-looking folder."""
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        draft.chmod(0o700)
        password = draft.with_suffix(".password")
        replace_file(password, self._password_file.read_bytes())
        if os.getuid() == 0:
            shutil.chown(draft, ACCOUNT, ACCOUNT)
            shutil.chown(password, ACCOUNT, ACCOUNT)
        argv = [self._binary("initdb"), "--no-sync", "--no-instructions"]
        argv += options(pgdata=draft, pwfile=password, username=ACCOUNT)
        argv += options(auth="scram-sha-256", encoding="UTF8", locale="C")
        done = subprocess.run(as_account(argv), capture_output=True, text=True, cwd="/", check=False)
        password.unlink()
        if done.returncode:
            raise ConfigurationError(f"PostgreSQL's data folder could not be created: {done.stderr.strip()}")
        draft.rename(self._data)

    def _drop_stale_lock(self) -> None:
        """Remove the lock of a killed server whose process id belongs to another program, or to its own zombie.

        PostgreSQL mistakes both for a running server. In many containers no process reaps orphans, so zombies stay.
        """
        try:
            stat = Path(f"/proc/{int(self._lock.read_text().split()[0])}/stat").read_text()
        except (FileNotFoundError, IndexError, ValueError):
            return  # no lock, or no process with this id: the server handles this itself
        if "(postgres) " not in stat or "(postgres) Z" in stat:
            self._lock.unlink(missing_ok=True)

    def _until_orphans_left(self) -> None:
        """Wait until the children of a killed server are gone. While they share its memory, no server can start."""
        try:
            shared = self._lock.read_text().splitlines()[SHARED_MEMORY].split()
            _is_attached(shared)
        except (FileNotFoundError, IndexError, ValueError):
            return  # no lock, or no shared memory in it: the server handles this itself
        deadline = time.monotonic() + ORPHANS_LEAVE_WITHIN_S
        while _is_attached(shared) and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _is_ready(self) -> bool:
        argv = [self._binary("pg_isready"), "--quiet", *options(host=HOST, port=self.port)]
        return subprocess.run(argv, check=False, cwd="/").returncode == 0

    @staticmethod
    def _binary(name: str) -> str:
        """Return the path of a program of the newest installed PostgreSQL."""
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
        if not found:
            raise ConfigurationError("PostgreSQL is not installed.", next_step="Run `./run setup`.")
        return str(found[-1])


def _is_attached(segment: Sequence[str]) -> bool:
    """Return whether a process uses the shared memory segment with this key and id. The kernel shows keys as signed."""
    key, number = int(segment[0]), segment[1]
    rows = (line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:])
    return any(int(row[0]) % 2**32 == key % 2**32 and row[1] == number and int(row[6]) > 0 for row in rows)


def as_account(argv: Sequence[str]) -> list[str]:
    """`argv` unchanged; for root, run by the account `postgres` with at most one capability."""
    if os.getuid() != 0:
        return list(argv)
    account = [f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
    return ["setpriv", *account, *_capabilities(), "--", *argv]


def _capabilities() -> list[str]:
    """Return the options that pass on the capability to enter closed folders, if we have it."""
    status = Path("/proc/self/status").read_text()
    ours = int(status.split("CapEff:")[1].split()[0], 16)
    for name, number in PASSAGES.items():
        if ours >> number & 1:
            only = f"-all,+{name}"
            return [f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"]
    return []
