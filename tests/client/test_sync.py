"""`Grid` and its kin on the live grid: what they return, raise, and leave behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import Grid, InputError, Job, JobFailed, JobStatus, WaitTimeout
from tests.cli.live import EXAMPLE
from tests.client.conftest import Customer, Stage
from tests.client.support import SimulatedCluster, until


@pytest.fixture
def grid(customer: Customer) -> Iterator[Grid]:
    with Grid(customer.key, customer.book) as opened:
        yield opened


@pytest.fixture
def cluster(live: object) -> object: ...
