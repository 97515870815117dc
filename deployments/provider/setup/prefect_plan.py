"""The plan of `dps provider init`: what differs between the settings file and Prefect, and how to change it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from prefect.blocks.core import Block
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker
from pydantic import ValidationError

from blocks import Grid, Provider, SlurmLogin, Wallet
from blocks.block_loading import faults_of
from deepgrid.billing.credits import parse_credits
from deepgrid.chain.transactions.wallet import Wallet as Key
from deepgrid.errors import ConfigurationError, ServiceError
from deployments.provider.setup.answer_checks import path_of
from deployments.release import release
from orchestration.automations import compare_automations, deploy_automations
from orchestration.pools import PROCESSES, provider_pool
from orchestration.worker import InProcessWorker

REPOSITORY = Path(__file__).resolve().parents[3]
PREFECT_FILE = REPOSITORY / "deployments" / "provider" / "prefect.yaml"
PRICES = {"cpu": "cpu_wei_per_minute", "memory_mb": "mem_wei_per_mb_minute", "gpu": "gpu_wei_per_minute"}
PATHS = {
    "login.key_file",
    "login.known_hosts_file",
    "login.jump_key_file",
    "login.jump_known_hosts_file",
    "supervisor.state",
}


@dataclass
class Plan:
    """Objects in Prefect that are missing or differ. `lines` says what happens to each."""

    cluster: str
    blocks: list[Block] = field(default_factory=list)
    pools: list[str] = field(default_factory=list)
    deploys: bool = False
    notifies_by: str = ""  # name of a block, if automations are missing or differ
    lines: list[str] = field(default_factory=list)


def blocks_of(values: dict[str, Any]) -> list[Block]:
    """Return the blocks that a settings file describes. The provider block is the last.

    Raises ConfigurationError for a wrong value.
    """
    try:
        key_file = path_of(values["grid"]["key_file"])
        grid = Grid(address_book=path_of(values["grid"]["address_book"]))
        wallet = Wallet(address=Key.load(key_file).address, key_file=key_file)
        login = SlurmLogin(**_fields("login", values))
        further = {field: str(parse_credits(str(values["prices"][name]))) for name, field in PRICES.items()}
        further |= {"labels": values.get("labels", {}), **_fields("supervisor", values)}
        provider = Provider(cluster=values["cluster"], grid=grid, wallet=wallet, login=login, **further)
    except KeyError as error:
        raise ConfigurationError(f"The settings lack {error.args[0]}.") from None
    except ValidationError as error:
        raise ConfigurationError(f"The settings cannot be used: {faults_of(error)}.") from None
    return [grid, wallet, login, provider]


async def make_plan(values: dict[str, Any]) -> Plan:
    """Compare the settings with Prefect. Nothing is changed. Raises ServiceError when Prefect does not answer."""
    plan = Plan(values["cluster"])
    for block in blocks_of(values):
        if changes := await _changes(block, plan.cluster):
            plan.blocks.append(block)
            plan.lines.append(f"block {block.get_block_type_slug()}/{plan.cluster}: {', '.join(changes)}")
    async with get_client() as client:
        for name in (provider_pool(plan.cluster), PROCESSES):
            try:
                await client.read_work_pool(name)
            except ObjectNotFound:
                plan.pools.append(name)
                plan.lines.append(f"work pool {name}: new")
        for wanted in deployments_of(plan.cluster):
            if change := await _deployment_change(client, wanted):
                plan.deploys = True
                plan.lines.append(f"deployment {wanted['flow_name']}/{wanted['name']}: {change}")
    if block := values.get("prefect", {}).get("notify", ""):
        differing = {name: what for name, what in (await compare_automations(block)).items() if what != "unchanged"}
        plan.notifies_by = block if differing else ""
        plan.lines += [f"automation {name}: {what}" for name, what in differing.items()]
    return plan


async def apply(plan: Plan, environment: dict[str, str]) -> None:
    """Make the changes. `environment` says where Prefect is. It can be repeated after any failure."""
    async with get_client() as client:
        for name in plan.pools:
            await create_pool(client, name)
    for block in plan.blocks:
        await block.asave(plan.cluster, overwrite=True)
    if plan.deploys:
        await _deploy(plan.cluster, environment)
    if plan.notifies_by:
        await deploy_automations(plan.notifies_by)


async def create_pool(client: PrefectClient, name: str) -> None:
    """Create a work pool for Prefect's own worker, or for the worker in a role's process."""
    worker = ProcessWorker if name == PROCESSES else InProcessWorker
    template = worker.get_default_base_job_template()
    await client.create_work_pool(WorkPoolCreate(name=name, type=worker.type, base_job_template=template))


def deployments_of(cluster: str) -> list[dict[str, Any]]:
    """Return the deployments of prefect.yaml for this cluster."""
    text = PREFECT_FILE.read_text().replace("{{ $CLUSTER }}", cluster).replace("{{ release.version }}", release())
    found: list[dict[str, Any]] = yaml.safe_load(text)["deployments"]
    return found


def _fields(section: str, values: dict[str, Any]) -> dict[str, Any]:
    fields = values.get(section, {})
    return {name: path_of(value) if f"{section}.{name}" in PATHS else value for name, value in fields.items()}


async def _changes(block: Block, name: str) -> list[str]:
    """Return the differences from Prefect's block."""
    try:
        before = await type(block).aload(name)
    except ValueError:
        return ["new"]
    old, new = _plain(before), _plain(block)
    nested = {key for key, value in new.items() if isinstance(value, dict) and key in ("grid", "wallet", "login")}
    return [
        f"{key} {old.get(key)!r} -> {new[key]!r}" for key in new if key not in nested and old.get(key) != new[key]
    ] + [f"{key} changed" for key in sorted(nested) if not _holds(old.get(key), new[key])]


def _plain(block: Block) -> dict[str, Any]:
    values = block.model_dump(mode="json")
    return {name: _empty(values.get(name)) for name in type(block).model_fields}


def _empty(value: Any) -> Any:
    return None if value == "" else value


def _holds(old: Any, new: dict[str, Any]) -> bool:
    return isinstance(old, dict) and all(_empty(old.get(name)) == _empty(value) for name, value in new.items())


async def _deployment_change(client: PrefectClient, wanted: dict[str, Any]) -> str:
    try:
        found = await client.read_deployment_by_name(f"{wanted['flow_name']}/{wanted['name']}")
    except ObjectNotFound:
        return "new"
    old = {name: getattr(found, name) for name in ("entrypoint", "description", "parameters", "version")}
    old |= {"tags": sorted(found.tags), "work_pool": {"name": found.work_pool_name}}
    new = {**wanted, "tags": sorted(wanted.get("tags", []))}
    different = [name for name, value in old.items() if _text(value) != _text(new.get(name))]
    return f"{', '.join(different)} changed" if different else ""


def _text(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


async def _deploy(cluster: str, environment: dict[str, str]) -> None:
    """Run `prefect deploy`. Paused schedules stay paused."""
    argv = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(PREFECT_FILE)]
    env = {**os.environ, **environment, "CLUSTER": cluster}
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=REPOSITORY, env=env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise ServiceError(f"Prefect refused the deployments of {cluster}: {' '.join(last)[:300]}", transient=False)
