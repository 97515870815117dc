"""A client and the mechanics of the grid, free of Prefect. `deepgrid.__all__` names what is public.

Public names are imported when they are used, so `import deepgrid` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepgrid.client import AccessDenied as AccessDenied
    from deepgrid.client import ChainError as ChainError
    from deepgrid.client import ConfigurationError as ConfigurationError
    from deepgrid.client import ContractError as ContractError
    from deepgrid.client import CustomerSession as CustomerSession
    from deepgrid.client import CustomerSettings as CustomerSettings
    from deepgrid.client import GridError as GridError
    from deepgrid.client import InputError as InputError
    from deepgrid.client import Job as Job
    from deepgrid.client import JobStatus as JobStatus
    from deepgrid.client import NotFound as NotFound
    from deepgrid.client import Order as Order
    from deepgrid.client import ServiceError as ServiceError
    from deepgrid.client import customer_session as customer_session
    from deepgrid.client import read_order as read_order

__all__ = [
    "AccessDenied", "ChainError", "ConfigurationError", "ContractError", "CustomerSession", "CustomerSettings",
    "GridError", "InputError", "Job", "JobStatus", "NotFound", "Order", "ServiceError", "customer_session",
    "read_order",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'deepgrid' has no attribute {name!r}")
    return getattr(import_module("deepgrid.client"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
