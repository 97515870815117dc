"""Everything that the operator's flows need to know."""

from __future__ import annotations

from pathlib import Path

from prefect.blocks.core import Block
from pydantic import Field

from blocks.grid import Grid, Wallet
from deepgrid.roles.operator import OperatorSettings


class Operator(Block):
    """The operator of a grid: its address book, and the wallet that may assign jobs."""

    _block_type_name = "deepgrid Operator"
    _block_type_slug = "deepgrid-operator"

    grid: Grid
    wallet: Wallet
    state: Path = Field(description="Folder of the operator for its cursor on the chain.")

    def settings(self) -> OperatorSettings:
        """The same as values for `deepgrid.roles`."""
        return OperatorSettings(book=self.grid.address_book, key_file=self.wallet.key_file, state=self.state)
