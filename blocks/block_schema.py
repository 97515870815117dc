"""The base of the grid's blocks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from prefect.blocks.core import Block

_schemas: dict[type[Block], dict[str, Any]] = {}


class GridBlock(Block):
    """A block that computes its schema once. Prefect requests it about thirty times per save."""

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """The schema of the block's fields. It is a copy, so the caller may change it."""
        if args or options or not cls.__pydantic_complete__:
            return super().model_json_schema(*args, **options)
        if cls not in _schemas:
            _schemas[cls] = super().model_json_schema()
        return deepcopy(_schemas[cls])
