"""The protocols of existing clients are mounted in front of the services, or absent."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from deepgrid.compat.logger_api.methods import SERVICE
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.edge.listeners import address_of, open_listeners
from deepgrid.services.serve import listening
from tests.services.support import DOMAIN, rich_chain

REQUESTS = (
    ("POST", "/graphql"), ("GET", "/graphql"), ("GET", "/"), ("GET", "/health"), ("POST", f"/{SERVICE}/Read"),
    ("OPTIONS", f"/{SERVICE}/Read"),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_switched_off_nothing_of_it_is_there(tmp_path: Path, method: str, path: str) -> None:
    settings = ServicesSettings(f"sqlite:///{tmp_path}/services.sqlite", tmp_path / "secret", port=0, grpc_port=0)
    headers = {"Origin": "https://page.example", "Content-Type": "application/json"}
    with open_listeners(settings, with_grpc=False) as listeners:
        async with (
            open_services(settings, DOMAIN, rich_chain()) as app,
            listening(app, listeners),
            httpx.AsyncClient(base_url=f"http://{address_of(listeners.http)}") as client,
        ):
            assert listeners.grpc is None
            answer = await client.request(method, path, headers=headers)
            assert answer.status_code == 404
            assert "access-control-allow-origin" not in answer.headers
            assert (await client.get("/v1/health")).status_code == 200
