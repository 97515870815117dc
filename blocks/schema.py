"""The base of the grid's blocks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from prefect.blocks.core import Block

_schemas: dict[type[Block], dict[str, Any]] = {}


class GridBlock(Block):
    """A block that works its schema out once: Prefect asks for it some thirty times each time it saves one."""

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """The schema of the block's fields; a copy, which the caller may change."""
        if args or options or not cls.__pydantic_complete__:
            return super().model_json_schema(*args, **options)
        if cls not in _schemas:
            _schemas[cls] = super().model_json_schema()
        return deepcopy(_schemas[cls])
