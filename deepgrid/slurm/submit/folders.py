"""Folders on the login node: storage folders of accounts, made before their first job, and what claims leave.

Every account may create folders in the storage roots. A folder that exists already cannot be taken by another account.
One command finds all that claims left, another one removes it. The caller reads from the chain what may be removed.
`leftovers.sh` explains how it is removed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

REMOVE_WITHIN_S = 60
COMMAND_TIMEOUT_S = REMOVE_WITHIN_S + 150.0  # the last folder may take longer

TABLE_WITHIN_S = 20
KIB = 1024

logger = logging.getLogger(__name__)

_LEFTOVERS = read_script("as_user.sh", "leftovers.sh")
_OWN_FOLDERS = read_script("as_user.sh", "own_folders.sh")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A leftover of a claim: its own folder, or a storage folder of its job if `storage` names one."""

    key: JobKey
    storage: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """The output file of a claim, which takes `size_bytes` of the disk."""

    key: JobKey
    size_bytes: int


class Leftovers:
    """The leftovers of one cluster. `storage` is the root folder in which jobs make their storage folders."""

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self._settings = settings

    async def find(self, like: JobKey, storage: str, keep_days: int) -> list[Leftover]:
        """Return the folders of claims of `like`'s grid that did not change for `keep_days`, and all storage of its
        claims.
        """
        done = await self._login.run(self._command("find", like, storage, keep_days), timeout_s=COMMAND_TIMEOUT_S)
        found = []
        for kind, folder, name in _lines(done):
            if (key := like.of_same_grid(folder)) and (kind == "storage") == bool(name):
                found.append(Leftover(key, name))
        return found

    async def outputs(self, like: JobKey) -> list[Output]:
        """Return the outputs of claims of `like`'s grid that take more than 1 MiB."""
        done = await self._login.run(self._command("outputs", like, ""), timeout_s=COMMAND_TIMEOUT_S)
        rows = [(like.of_same_grid(folder), kib) for _, folder, kib in _lines(done)]
        return [Output(key, int(kib) * KIB) for key, kib in rows if key and kib.isdecimal()]

    async def remove_outputs(self, like: JobKey, outputs: Iterable[Output]) -> list[Output]:
        """Remove as many of these files as time allows. Returns the removed ones."""
        by_folder = {one.key.folder: one for one in outputs}
        gone = await self._remove(like, "", [f"output {folder}" for folder in by_folder])
        return [one for folder, one in by_folder.items() if ("output", folder) in gone]

    async def remove(self, like: JobKey, storage: str, leftovers: Iterable[Leftover]) -> list[Leftover]:
        """Remove as many of these as time allows. Returns the removed ones. Call again for the rest."""
        lines = {_line(one): one for one in leftovers}
        removed = await self._remove(like, storage, lines)
        return [one for one in lines.values() if (_kind(one), one.key.folder) in removed]

    async def _remove(self, like: JobKey, storage: str, lines: Iterable[str]) -> set[tuple[str, str]]:
        """Remove leftovers. Returns the kinds and folders of the removed ones."""
        command = self._command("remove", like, storage, REMOVE_WITHIN_S)
        stdin = "".join(f"{line}\n" for line in lines).encode()
        done = await self._login.run(command, stdin=stdin, timeout_s=COMMAND_TIMEOUT_S)
        return {(kind, folder) for _, kind, folder in _lines(done)}

    def _command(self, verb: str, like: JobKey, storage: str, *arguments: object) -> list[str]:
        grid = "-".join(like.folder.split("-")[:2])
        return call(_LEFTOVERS, verb, self._settings.grid_root, storage, grid, *arguments)


def _kind(one: Leftover) -> str:
    return "storage" if one.storage else "claim"


def _line(one: Leftover) -> str:
    return f"{_kind(one)} {one.key.folder} {one.storage}".rstrip()


def _lines(done: CommandResult) -> list[tuple[str, str, str]]:
    """Return the rows of the answer. Logs what the script skipped."""
    words = [line.split(" ") for line in whole_answer(done)]
    for row in words:
        if row[0] == "skipped" and len(row) > 3:
            logger.warning("clean-up skipped %s %s: %s", row[1], row[2], " ".join(row[3:]))
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in words if len(row) in (2, 3)]


class OwnFolders:
    """The storage folders of the accounts that this process knows. Each account's folders are made once."""

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self._settings = settings
        self._made: set[str] = set()
        self._making: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._table = set(settings.accounts.table.values())  # until they had their turn

    async def make(self, customer: str, prefixes: Sequence[str]) -> None:
        """Make the folders for this customer's account. The first call also makes the folders of the account table,
        within TABLE_WITHIN_S for all. Late ones wait for their own first job. `prefixes` are the paths without the
        account's number. Logs which names other accounts have taken: jobs then use folders with random names. Raises
        SlurmError when this cluster does not serve the customer.
        """
        account = self._settings.account_of(customer) or self._settings.user
        async with self._making[account]:
            if account in self._made:
                return
            others, self._table = self._table - {account}, set()
            names = [account, *random.sample(sorted(others), len(others))]
            stdin = "".join(f"{name}\n" for name in names).encode()
            answer = whole_answer(await self._login.run(call(_OWN_FOLDERS, TABLE_WITHIN_S, *prefixes), stdin=stdin))
            self._made.add(account)
        for line in answer:
            logger.warning("storage folder is taken by another account: %s", line.removeprefix("taken "))
