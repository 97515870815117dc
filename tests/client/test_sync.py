"""`Grid` and its kin on the live grid: what they return, raise, and leave behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deepgrid.client import Grid
from tests.client.conftest import Customer


@pytest.fixture
def grid(customer: Customer) -> Iterator[Grid]:
    with Grid(customer.key, customer.book) as opened:
        yield opened


@pytest.fixture
def cluster(live: object) -> object: ...
