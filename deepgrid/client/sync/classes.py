"""The sync classes. Each has the members of its async class; `classes.pyi` has their signatures and docstrings."""

from __future__ import annotations

from deepgrid.client.grid import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_list import AsyncJobs
from deepgrid.client.job_set import AsyncJobSet
from deepgrid.client.sync.sync_proxy import SyncProxy
from deepgrid.client.tunnel.port_forward import AsyncPortForward
from deepgrid.client.wallet import AsyncWallet


class Grid(SyncProxy, of=AsyncGrid):
    """`AsyncGrid` without `await`."""


class Job(SyncProxy, of=AsyncJob):
    """`AsyncJob` without `await`."""


class JobSet(SyncProxy, of=AsyncJobSet):
    """`AsyncJobSet` without `await`."""


class Jobs(SyncProxy, of=AsyncJobs):
    """`AsyncJobs` without `await`."""


class PortForward(SyncProxy, of=AsyncPortForward):
    """`AsyncPortForward` without `await`."""


class Wallet(SyncProxy, of=AsyncWallet):
    """`AsyncWallet` without `await`."""
