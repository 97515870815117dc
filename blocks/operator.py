"""Configuration of the operator's flows."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from blocks.block_schema import GridBlock
from blocks.grid import Grid, Wallet
from blocks.services import Services
from deepgrid.operator.session import OperatorSettings


class Operator(GridBlock):
    """The operator of a grid: its address book, and the wallet that may assign jobs."""

    _block_type_name = "deepgrid Operator"
    _block_type_slug = "deepgrid-operator"

    grid: Grid
    wallet: Wallet
    services: Services | None = Field(default=None, description="Empty for the URL in the address book.")
    state: Path = Field(description="Folder of the operator for its cursor on the chain.")
    approve_label_changes: bool = Field(
        default=False,
        description="Approve changes of approved providers automatically, if only measured labels change.",
    )

    def settings(self) -> OperatorSettings:
        """Convert to the settings of `deepgrid.operator`."""
        services_url = self.services.url if self.services else ""
        return OperatorSettings(
            book=self.grid.address_book,
            key_file=self.wallet.key_file,
            state=self.state,
            services_url=services_url,
            approve_label_changes=self.approve_label_changes,
        )
