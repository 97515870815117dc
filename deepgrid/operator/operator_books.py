"""The books of the whole grid, from the chain alone."""

from __future__ import annotations

from deepgrid.chain.ledger import Books
from deepgrid.operator.session import OperatorSession


class OperatorBooks(Books):
    """The books of the whole grid. They compare contract and token, as the operator has no Slurm."""

    def __init__(self, name: str, session: OperatorSession) -> None:
        super().__init__(name, session.chain, session.settings.state / "books", None)
        self._session = session

    async def hot(self) -> list[int]:
        """Return jobs that were hot at the last update of the operator's index, and newer jobs."""
        index = self._session.index
        unseen = range(index.last_id() + 1, await self.chain.job_count() + 1)
        return await self.existing({*index.hot(), *unseen})
