"""The machine of a role on a grid: its commands, its settings, and its loss."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.parties.party_plan import REGISTERED
from deployments.provider.setup.document import FIELDS, Document
from deployments.provider.setup.provider_questions import BY_KEY
from tests.grid.customer import DPS, PATIENCE_S
from tests.grid.runs import Json, api

WEI = 10**18
PRICES = {"cpu": "cpu_wei_per_minute", "memory_mb": "mem_wei_per_mb_minute", "gpu": "gpu_wei_per_minute"}


async def dps(grid: LocalGrid, *arguments: object, **settings: str) -> str:
    """Run `dps` with access to Prefect, and these variables. It must succeed. Returns what it printed."""
    env = {**os.environ, **grid.prefect.environment(), "DEEPGRID_BOOK": str(grid.book), **settings}
    process = await asyncio.create_subprocess_exec(
        str(DPS), *map(str, arguments), env=env, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        said = (await process.communicate())[0].decode()
    assert process.returncode == 0, f"dps {arguments}\n{said}"
    return said


async def block(grid: LocalGrid, kind: str, name: str) -> Json:
    """Return a block document of Prefect."""
    async with api(grid) as client:
        found = await client.get(f"block_types/slug/deepgrid-{kind}/block_documents/name/{name}")
        return dict(found.raise_for_status().json())


async def write_settings(grid: LocalGrid, cluster: str, file: Path) -> Path:
    """Return a cluster's settings file, as `dps provider init` would have made it for Prefect's blocks."""
    provider = await block(grid, "provider", cluster)
    login = (await block(grid, "slurm-login", cluster))["data"]
    login_file = file.with_name("prefect-login")
    login_file.touch(mode=0o600)
    login_file.write_text(grid.prefect.login())
    document = Document.read(file)
    wanted = {
        "cluster": cluster, "prefect.api_url": grid.prefect.environment()["PREFECT_API_URL"],
        "prefect.login_file": login_file, "grid.address_book": grid.book, "grid.key_file": grid.keys.file(cluster),
    }  # fmt: skip
    wanted |= {f"login.{name}": login[name] for name in FIELDS["login"] & (login.keys() - {"local_images"})}
    wanted |= {f"supervisor.{name}": provider["data"][name] for name in FIELDS["supervisor"] & provider["data"].keys()}
    wanted |= {f"labels.{name}": value for name, value in provider["data"]["labels"].items()}
    for name, wei in PRICES.items():
        whole, rest = divmod(int(provider["data"][wei]), WEI)
        wanted[f"prices.{name}"] = f"{whole}.{rest:018}"
    for key, value in wanted.items():
        if value is not None:
            document.set(key, str(value) if key in BY_KEY or isinstance(value, str) else json.dumps(value))
    document.write()
    return file


async def lose_provider(grid: LocalGrid, cluster: str, settings: Path) -> None:
    """Lose a provider's machine: its process, its files, and everything about it in Prefect."""
    grid.kill(f"supervisor-{cluster}")
    settings.unlink()
    settings.with_name("prefect-login").unlink()
    grid.keys.file(cluster).unlink()
    shutil.rmtree(grid.state / f"supervisor-{cluster}")
    await _lose_in_prefect(grid, cluster, f"provider-{cluster}", ("provider", "slurm-login"))


async def lose_operator(grid: LocalGrid, name: str) -> None:
    """Lose the operator's machine: its process, its files, and everything about it in Prefect."""
    grid.kill("operator")
    grid.keys.file("operator").unlink()
    shutil.rmtree(grid.state / "operator")
    await _lose_in_prefect(grid, name, f"operator-{name}", ("operator",))
    async with api(grid) as client:
        (await client.delete(f"variables/name/{REGISTERED}")).raise_for_status()


async def services_dps(grid: LocalGrid, verb: str, archive: Path) -> str:
    """Run `dps services backup` or `restore` with the settings of the grid's services."""
    return await dps(
        grid, "services", verb, archive,
        DEEPGRID_SERVICES_DATABASE=grid.postgres.url("services"), DEEPGRID_SERVICES_SECRET_FILE=str(_secret(grid)),
    )  # fmt: skip


async def lose_services(grid: LocalGrid) -> None:
    """Lose the services' machine: the process, the database and the secret file. Makes an empty database."""
    grid.kill("services")
    _secret(grid).unlink()
    server = await asyncpg.connect(grid.postgres.url("postgres").replace("+asyncpg", ""))
    try:
        await server.execute("DROP DATABASE services WITH (FORCE)")
        await server.execute("CREATE DATABASE services")
    finally:
        await server.close()


def _secret(grid: LocalGrid) -> Path:
    return grid.state / "services" / "secret"


async def _lose_in_prefect(grid: LocalGrid, name: str, pool: str, kinds: Sequence[str]) -> None:
    async with api(grid) as client:
        found = await client.post("deployments/filter", json={"deployments": {"name": {"any_": [name]}}})
        for deployment in found.raise_for_status().json():
            wanted = {"deployments": {"id": {"any_": [deployment["id"]]}}}
            for run in (await client.post("flow_runs/filter", json=wanted)).raise_for_status().json():
                (await client.delete(f"flow_runs/{run['id']}")).raise_for_status()
            (await client.delete(f"deployments/{deployment['id']}")).raise_for_status()
        (await client.delete(f"work_pools/{pool}")).raise_for_status()
        for kind in kinds:
            document = await block(grid, kind, name)
            (await client.delete(f"block_documents/{document['id']}")).raise_for_status()
