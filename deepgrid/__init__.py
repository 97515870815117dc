"""A client and the mechanics of the grid, free of Prefect. `deepgrid.__all__` lists the public names, which come from
`deepgrid.client`. They are imported when they are used, so `import deepgrid` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepgrid import client
from deepgrid.client import __all__ as __all__

if TYPE_CHECKING:
    from deepgrid.client import *  # noqa: F403 - exactly the names of __all__


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'deepgrid' has no attribute {name!r}")
    return getattr(client, name)


def __dir__() -> list[str]:
    return sorted(__all__)
