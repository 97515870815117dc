"""The books of the whole grid, from the chain and from receipts."""

from __future__ import annotations

from deepgrid.billing.entries import Ledger, Runs, Span
from deepgrid.billing.period import DAY_S
from deepgrid.chain.ledger import Books
from deepgrid.operator.receipt_runs import MissingReceipts, read_receipt_runs, settlement_to_compare_again
from deepgrid.operator.session import OperatorSession


class OperatorBooks(Books):
    """The books of the whole grid. They compare contract and token with what providers signed in receipts."""

    again_s = DAY_S  # a provider may send a receipt some time after the settlement

    def __init__(self, name: str, session: OperatorSession) -> None:
        super().__init__(name, session.chain, session.settings.state / "books", None)
        self._session = session

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs:
        """Return the runs in the receipts of the jobs that were settled in the period."""
        return await read_receipt_runs(self._session.services, ledger, self._missing(), await self.now())

    async def compare_again_from(self) -> int | None:
        """Return the time of the oldest settlement whose missing receipt can be read now, None without one."""
        return await settlement_to_compare_again(self._session.services, self._missing(), await self.now())

    def _missing(self) -> MissingReceipts:
        return MissingReceipts(self.folder / "missing_receipts.json")

    async def hot(self) -> list[int]:
        """Return jobs that were hot at the last update of the operator's index, and newer jobs."""
        index = self._session.index
        unseen = range(index.last_id() + 1, await self.chain.job_count() + 1)
        return await self.existing({*index.hot(), *unseen})
