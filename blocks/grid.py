"""A grid and a wallet."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from blocks.block_schema import GridBlock
from deepgrid.chain.book import AddressBook


class Grid(GridBlock):
    """A grid, by its address book: chain, contracts, services."""

    _block_type_name = "deepgrid Grid"
    _block_type_slug = "deepgrid-grid"

    address_book: Path = Field(description="Path of the grid's address book, a JSON file.")

    def load_book(self) -> AddressBook:
        """Read the address book. Raises ConfigurationError with the next step."""
        return AddressBook.load(self.address_book)


class Wallet(GridBlock):
    """A wallet, by its address and the path of its key file. The key stays in the file."""

    _block_type_name = "deepgrid Wallet"
    _block_type_slug = "deepgrid-wallet"

    address: str = Field(description="0x-address of the wallet, for recognition.")
    key_file: Path = Field(description="Path of the key file (mode 0600) on the machine that runs the flows.")
