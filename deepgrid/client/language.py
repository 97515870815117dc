"""The workflow language, as the client uses it. It takes 0.3 s to load, so each name is imported when it is used.

Programs that only read jobs, such as `dps job list`, do not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepgrid.customer.order import order_of as order_of
    from deepgrid.modules import load as load
    from deepgrid.modules import resolve as resolve
    from deepgrid.sbatch import StoragePaths as StoragePaths
    from deepgrid.sbatch import render as render
    from deepgrid.workflow import canonical as canonical
    from deepgrid.workflow import hash_definition as hash_definition
    from deepgrid.workflow import pack as pack
    from deepgrid.workflow import parse as parse
    from deepgrid.workflow import with_variables as with_variables

_MODULES = {
    "deepgrid.customer.order": ("order_of",),
    "deepgrid.modules": ("load", "resolve"),
    "deepgrid.sbatch": ("StoragePaths", "render"),
    "deepgrid.workflow": ("canonical", "hash_definition", "pack", "parse", "with_variables"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
