"""The Python client of a customer.

`Grid` submits jobs, waits for them and reads their output; `AsyncGrid` is the same with `await`. Both use
`CustomerSession`, whose steps can also be used one by one.

Example:
    from deepgrid import Grid

    with Grid() as grid:
        job = grid.submit("job.yaml", credits=100)
        job.wait()
        print(job.status.words, job.exit_code, job.bill.cost)

Amounts are `Decimal` credits; inside, they are ints of wei (1 credit = 10**18 wei). Every error is a `GridError`. Its
`transient` says whether a retry can help, its `next_step` what to do. Public names are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepgrid.billing.resource_use import ResourceUse
    from deepgrid.billing.use_samples import UseHistory, UseSample
    from deepgrid.client.bills.job_receipt import JobReceipt
    from deepgrid.client.cluster_offers import Cluster, ClusterOffer, Clusters, Offers
    from deepgrid.client.display.record import JobEnd, JobEvent, JobRecord
    from deepgrid.client.errors import (
        IdempotencyConflict,
        JobCancelled,
        JobError,
        JobFailed,
        JobPanicked,
        NoOutput,
        OutOfCredits,
        QuoteExpired,
        WaitTimeout,
    )
    from deepgrid.client.grid import AsyncGrid
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.job_list import AsyncJobs
    from deepgrid.client.job_output import OutputFile, ShareLink
    from deepgrid.client.job_set import AsyncJobSet
    from deepgrid.client.job_values import Bill, JobChange, LogLine, LogStatus, MoneyEnding, Remark, Step, ViewMessage
    from deepgrid.client.order import Order, read_order
    from deepgrid.client.quotes import Misfit, Offer, Quote
    from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
    from deepgrid.client.settings import ClientSettings
    from deepgrid.client.sweep.summary import Summary, Unsubmitted
    from deepgrid.client.sync.classes import Grid, Job, Jobs, JobSet, PortForward, Wallet
    from deepgrid.client.tunnel.live_job import CommandOutput
    from deepgrid.client.tunnel.port_forward import AsyncPortForward
    from deepgrid.client.wallet import AsyncWallet
    from deepgrid.client.workflow import Workflow
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
    from deepgrid.lifecycle.states import JobStatus

_NAMES = {
    "deepgrid.billing.resource_use": "ResourceUse",
    "deepgrid.billing.use_samples": "UseHistory UseSample",
    "deepgrid.client.bills.job_receipt": "JobReceipt",
    "deepgrid.client.cluster_offers": "Cluster ClusterOffer Clusters Offers",
    "deepgrid.client.display.record": "JobEnd JobEvent JobRecord",
    "deepgrid.client.errors": (
        "IdempotencyConflict JobCancelled JobError JobFailed JobPanicked NoOutput OutOfCredits QuoteExpired WaitTimeout"
    ),
    "deepgrid.client.grid": "AsyncGrid",
    "deepgrid.client.job": "AsyncJob",
    "deepgrid.client.job_list": "AsyncJobs",
    "deepgrid.client.job_output": "OutputFile ShareLink",
    "deepgrid.client.job_set": "AsyncJobSet",
    "deepgrid.client.job_values": "Bill JobChange LogLine LogStatus MoneyEnding Remark Step ViewMessage",
    "deepgrid.client.order": "Order read_order",
    "deepgrid.client.quotes": "Misfit Offer Quote",
    "deepgrid.client.session": "CustomerSession CustomerSettings customer_session",
    "deepgrid.client.settings": "ClientSettings",
    "deepgrid.client.sweep.summary": "Summary Unsubmitted",
    "deepgrid.client.sync.classes": "Grid Job JobSet Jobs PortForward Wallet",
    "deepgrid.client.tunnel.live_job": "CommandOutput",
    "deepgrid.client.tunnel.port_forward": "AsyncPortForward",
    "deepgrid.client.wallet": "AsyncWallet",
    "deepgrid.client.workflow": "Workflow",
    "deepgrid.errors": (
        "AccessDenied ChainError ConfigurationError ContractError GridError InputError NotFound ServiceError"
    ),
    "deepgrid.lifecycle.states": "JobStatus",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AccessDenied",
    "AsyncGrid",
    "AsyncJob",
    "AsyncJobSet",
    "AsyncJobs",
    "AsyncPortForward",
    "AsyncWallet",
    "Bill",
    "ChainError",
    "ClientSettings",
    "Cluster",
    "ClusterOffer",
    "Clusters",
    "CommandOutput",
    "ConfigurationError",
    "ContractError",
    "CustomerSession",
    "CustomerSettings",
    "Grid",
    "GridError",
    "IdempotencyConflict",
    "InputError",
    "Job",
    "JobCancelled",
    "JobChange",
    "JobEnd",
    "JobError",
    "JobEvent",
    "JobFailed",
    "JobPanicked",
    "JobReceipt",
    "JobRecord",
    "JobSet",
    "JobStatus",
    "Jobs",
    "LogLine",
    "LogStatus",
    "Misfit",
    "MoneyEnding",
    "NoOutput",
    "NotFound",
    "Offer",
    "Offers",
    "Order",
    "OutOfCredits",
    "OutputFile",
    "PortForward",
    "Quote",
    "QuoteExpired",
    "Remark",
    "ResourceUse",
    "ServiceError",
    "ShareLink",
    "Step",
    "Summary",
    "Unsubmitted",
    "UseHistory",
    "UseSample",
    "ViewMessage",
    "WaitTimeout",
    "Wallet",
    "Workflow",
    "customer_session",
    "read_order",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'deepgrid.client' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
