"""Storage folders of the accounts of jobs, made on the login node before an account's first job.

Every account may create folders in the storage roots. A folder that exists already cannot be taken by another account.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Sequence

from deepgrid.slurm.ssh.login import LoginSettings, Runner
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

TABLE_WITHIN_S = 20

logger = logging.getLogger(__name__)

_SCRIPT = read_script("as_user.sh", "own_folders.sh")


class OwnFolders:
    """The storage folders of the accounts that this process knows. Each account's folders are made once."""

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self._settings = settings
        self._made: set[str] = set()
        self._making: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._table = set(settings.accounts.table.values())  # until they had their turn

    async def make(self, customer: str, prefixes: Sequence[str]) -> None:
        """Make the folders for this customer's account. The first call also makes those of the account table.

        The others of the table get TABLE_WITHIN_S together. Those that are late wait for their own first job.
        `prefixes` are the paths without the account's number. Logs which names other accounts have taken: jobs then
        use folders with random names. Raises SlurmError when this cluster does not serve the customer.
        """
        account = self._settings.account_of(customer) or self._settings.user
        async with self._making[account]:
            if account in self._made:
                return
            others, self._table = self._table - {account}, set()
            names = [account, *random.sample(sorted(others), len(others))]
            stdin = "".join(f"{name}\n" for name in names).encode()
            answer = whole_answer(await self._login.run(call(_SCRIPT, TABLE_WITHIN_S, *prefixes), stdin=stdin))
            self._made.add(account)
        for line in answer:
            logger.warning("storage folder is taken by another account: %s", line.removeprefix("taken "))
