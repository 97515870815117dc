"""Blocks that all roles refer to: a grid, a wallet and the services. Also the base class of all blocks."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.blocks.core import Block
from pydantic import ConfigDict, Field

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_schemas: dict[type[Block], dict[str, Any]] = {}


class GridBlock(Block):
    """A block that computes its schema once. Prefect requests it about thirty times per save.

    A description that does not fit on the line of its field is the field's docstring.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema of the block's fields. It is a copy, so the caller may change it."""
        if args or options or not cls.__pydantic_complete__:
            return super().model_json_schema(*args, **options)
        if cls not in _schemas:
            _schemas[cls] = super().model_json_schema()
        return deepcopy(_schemas[cls])

    def shared_with(self, settings: type[DataclassInstance]) -> dict[str, Any]:
        """Return the values of all fields that the settings class has under the same name."""
        return {one.name: getattr(self, one.name) for one in fields(settings) if one.name in type(self).model_fields}


class Grid(GridBlock):
    """A grid, by its address book: chain, contracts, services."""

    _block_type_name = "deepgrid Grid"
    _block_type_slug = "deepgrid-grid"

    address_book: Path = Field(description="Path of the grid's address book, a JSON file.")


class Wallet(GridBlock):
    """A wallet, by its address and the path of its key file. The key stays in the file."""

    _block_type_name = "deepgrid Wallet"
    _block_type_slug = "deepgrid-wallet"

    address: str = Field(description="0x-address of the wallet, for recognition.")
    key_file: Path = Field(description="Path of the key file (mode 0600) on the machine that runs the flows.")


class Services(GridBlock):
    """The Job Definition and log services, if their URL differs from the one in the address book."""

    _block_type_name = "deepgrid Services"
    _block_type_slug = "deepgrid-services"

    url: str
    """Base URL of the services, without a path, as seen from the machine that runs the flows."""
