"""A program that is older or newer than the services of its grid says so in one sentence."""

from __future__ import annotations

import httpx
import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.services import protocol_version
from deepgrid.services.protocol_version import HEADER, SERVED, SPOKEN, check
from tests.services.support import Grid


def test_this_release_serves_what_it_speaks() -> None:
    assert SPOKEN in SERVED


@pytest.mark.parametrize("header", [None, "", "1", "1, 2", "2,1", "what"])
def test_services_that_serve_our_version_are_fine(header: str | None) -> None:
    check(header)


def test_an_older_program_is_told_to_upgrade() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check("2, 3")
    assert "This program is older than its grid: it speaks protocol 1" in refused.value.message
    assert "the services 2 and 3." in refused.value.message
    assert refused.value.next_step == "Upgrade deepgrid on this machine."


def test_a_newer_program_is_told_to_wait_for_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_version, "SPOKEN", 2)
    for header in (None, "1"):
        with pytest.raises(ConfigurationError, match="The grid is older than this program"):
            check(header)


async def test_the_services_say_which_versions_they_serve(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    async with httpx.AsyncClient(base_url=grid.url) as http:
        assert (await http.get("/v1/health")).headers[HEADER] == "1"
    await grid.customer.health()
    monkeypatch.setattr(protocol_version, "SPOKEN", 2)
    with pytest.raises(ConfigurationError, match="The grid is older than this program"):
        await grid.customer.health()
