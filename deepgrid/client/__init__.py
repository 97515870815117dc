"""The Python client of a customer: sessions, orders, jobs and errors.

Amounts are ints of wei (1 credit = 10**18 wei). Times are unix seconds. The client is asynchronous.
Submit a workflow file and read the state of its job:

    from pathlib import Path

    from deepgrid.client import CustomerSettings, customer_session, read_order

    async def submit() -> None:
        order = read_order(Path("job.yaml"), locked_wei=100 * 10**18)
        async with customer_session(CustomerSettings(Path("~/.dps/key").expanduser())) as session:
            await session.check(order)
            definition_hash = await session.store(order)
            job_id = await session.request(order, definition_hash)
            job = await session.chain.job(job_id)
            print(job.id, job.status.words)

Every error is a `GridError`. Its `transient` says whether a retry can help, its `next_step` what to do.
"""

from deepgrid.customer.order import Order, read_order
from deepgrid.customer.session import CustomerSession, CustomerSettings, customer_session
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
