"""Everything that a customer's flows need to know."""

from __future__ import annotations

from prefect.blocks.core import Block

from blocks.grid import Grid, Wallet
from deepgrid.roles.customer import CustomerSettings


class Customer(Block):
    """A customer: the grid to submit to, and the wallet that pays."""

    _block_type_name = "deepgrid Customer"
    _block_type_slug = "deepgrid-customer"

    grid: Grid
    wallet: Wallet

    def settings(self) -> CustomerSettings:
        """The same as values for `deepgrid.roles`."""
        return CustomerSettings(key_file=self.wallet.key_file, book=self.grid.address_book)
