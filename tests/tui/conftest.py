"""Fixtures of the terminal app: it runs without a terminal, on a live grid, with a customer of 1,000 credits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from deepgrid.client import AsyncGrid, ClientSettings
from deepgrid.tui.grid_app import GridApp
from tests.client.conftest import chain as chain
from tests.client.conftest import customer as customer
from tests.client.conftest import grid as grid
from tests.client.conftest import live as live
from tests.client.conftest import operator as operator
from tests.client.conftest import provider as provider
from tests.client.conftest import stage as stage
from tests.client.stage import Customer

NewApp = Callable[..., GridApp]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
async def new_app(customer: Customer) -> AsyncIterator[NewApp]:
    """Make the app of the customer, as `dps tui` does."""

    def make(**options: object) -> GridApp:
        settings = ClientSettings(patience_s=1.0)
        return GridApp(lambda: AsyncGrid(customer.key, customer.book, settings=settings), **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def app(new_app: NewApp) -> GridApp:
    return new_app()
