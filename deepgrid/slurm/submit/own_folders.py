"""Storage folders of the accounts of jobs, made on the login node before an account's first job.

Every account may create folders in the storage roots. A folder that exists already cannot be taken by another account.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from deepgrid.slurm.ssh.login import LoginSettings, Runner
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

logger = logging.getLogger(__name__)

_SCRIPT = read_script("as_user.sh", "own_folders.sh")


class OwnFolders:
    """The storage folders of the accounts that this process knows. Each account's folders are made once."""

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self._settings = settings
        self._known: set[str] = set()

    async def make(self, customer: str, beginnings: Sequence[str]) -> None:
        """Make the folders for this customer's account, and at the first call those for all accounts of the table.

        `beginnings` are the paths without the account's number. Logs which names other accounts have taken: jobs then
        use folders with random names. Raises SlurmError when this cluster does not serve the customer.
        """
        settings = self._settings
        wanted = {settings.account_of(customer) or settings.user}
        if wanted <= self._known:
            return
        new = (wanted | set(settings.accounts.table.values())) - self._known
        self._known |= new
        try:
            stdin = "".join(f"{name}\n" for name in sorted(new)).encode()
            answer = whole_answer(await self._login.run(call(_SCRIPT, *beginnings), stdin=stdin))
        except BaseException:
            self._known -= new
            raise
        for line in answer:
            logger.warning("another account took the name of a storage folder: %s", line.removeprefix("taken "))
