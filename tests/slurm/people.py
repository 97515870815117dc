"""Unix accounts that tests make and remove. Their names differ in each run, because runs share the machine."""

from __future__ import annotations

import fcntl
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments.onemachine.slurm.accounts import recorded_accounts

FIRST_ID, LAST_ID = 200_000, 900_000
DATABASES = (Path("/etc/passwd"), Path("/etc/group"))


@contextmanager
def account(shell: str = "/bin/sh") -> Iterator[str]:
    """Yield an account as an administrator makes it: with its own group, without password and home."""
    name = f"dg-{secrets.token_hex(6)}"
    number = str(_free_id())
    options = ["--user-group", "--uid", number, "--no-create-home", "--home-dir", "/", "--shell", shell]
    subprocess.run(["useradd", *options, "--password", "*", name], check=True, capture_output=True)
    try:
        yield name
    finally:
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


@contextmanager
def wallet_account(number: int | None = None) -> Iterator[str]:
    """Yield an account whose name is a wallet address. useradd refuses it as too long, the databases accept it."""
    name = f"0x{secrets.token_hex(20)}"
    number = _free_id() if number is None else number
    lines = (f"{name}:x:{number}:{number}::/:/bin/sh", f"{name}:x:{number}:")
    for database, line in zip(DATABASES, lines, strict=True):
        _rewrite(database, line, present=True)
    try:
        yield name
    finally:
        for database, line in zip(DATABASES, lines, strict=True):
            _rewrite(database, line, present=False)


def remove_accounts(state: Path) -> None:
    """Remove the accounts that a grid with this state folder made for its customers. The grid must be down."""
    for book in state.glob("slurm/*/accounts"):
        for name in recorded_accounts(book):
            subprocess.run(["userdel", "--force", name], check=False, capture_output=True)


def _free_id() -> int:
    used = {line.split(":")[2] for database in DATABASES for line in database.read_text().splitlines()}
    while str(number := FIRST_ID + secrets.randbelow(LAST_ID - FIRST_ID)) in used:
        pass
    return number


def _rewrite(database: Path, line: str, *, present: bool) -> None:
    """Add or remove a line atomically, under the lock of lckpwdf(3), which useradd also takes."""
    with Path("/etc/.pwd.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        found = database.stat()
        new = database.with_name(f"{database.name}.{secrets.token_hex(4)}")
        others = [other for other in database.read_text().splitlines() if other != line]
        new.write_text("".join(f"{one}\n" for one in [*others, *([line] if present else [])]))
        new.chmod(found.st_mode)
        os.chown(new, found.st_uid, found.st_gid)
        new.rename(database)
