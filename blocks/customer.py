"""Configuration of a customer's flows."""

from __future__ import annotations

from pydantic import Field

from blocks.grid import Grid, GridBlock, Services, Wallet
from deepgrid.client.session import CustomerSettings


class Customer(GridBlock):
    """A customer: the grid to submit to, and the paying wallet."""

    _block_type_name = "deepgrid Customer"
    _block_type_slug = "deepgrid-customer"

    grid: Grid
    wallet: Wallet
    services: Services | None = Field(default=None, description="Empty for the URL in the address book.")

    def settings(self) -> CustomerSettings:
        """Convert to the settings of `deepgrid.client`."""
        services_url = self.services.url if self.services else ""
        return CustomerSettings(self.wallet.key_file, self.grid.address_book, services_url)
