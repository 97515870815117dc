"""What a customer's program needs: a session on the grid, orders, jobs and errors."""

from deepgrid.customer.session import (
    CustomerSession,
    CustomerSettings,
    Order,
    customer_session,
    read_order,
)
from deepgrid.errors import (
    AccessDenied,
    ChainError,
    ConfigurationError,
    ContractError,
    GridError,
    InputError,
    NotFound,
    ServiceError,
)
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

__all__ = [
    "AccessDenied", "ChainError", "ConfigurationError", "ContractError", "CustomerSession", "CustomerSettings",
    "GridError", "InputError", "Job", "JobStatus", "NotFound", "Order", "ServiceError", "customer_session",
    "read_order",
]  # fmt: skip
