"""Registers the grid's roles at Prefect: work pools, blocks, deployments.

It runs as a separate process, because Prefect reads its settings at import: `python -m
deployments.onemachine.parties.registration`, with its plan as JSON on standard input. At the end it stores the plan's
digest in a Prefect variable. While the digest is unchanged, there is nothing to do.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import yaml
from prefect import Flow
from prefect.blocks.core import Block
from prefect.cli import app as prefect_command
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectAlreadyExists
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.variables import Variable

from blocks import Benchmarks, Grid, Operator, Provider, Services, SlurmLogin, Wallet
from deepgrid.errors import ConfigurationError
from deployments.onemachine.parties.party_plan import OPERATOR_NAME, REGISTERED, REPOSITORY, Plan
from deployments.provider.setup.prefect_plan import create_pool
from deployments.release import release
from orchestration.pools import PROCESSES


def register(plan: Plan) -> None:
    """Create the missing objects of `plan` at Prefect, and update the others."""
    roles = [("operator", "OPERATOR", OPERATOR_NAME)]
    roles += [("provider", "CLUSTER", cluster.name) for cluster in plan.clusters]
    if not asyncio.run(_fill_a_new_server(plan, roles)):
        for role, variable, name in roles:
            _deploy(role, {variable: name})
    asyncio.run(Variable.aset(REGISTERED, plan.digest(), overwrite=True))


async def _fill_a_new_server(plan: Plan, roles: list[tuple[str, str, str]]) -> bool:
    """Make pools and blocks. Also create the deployments if the server has none, and return whether it had none."""
    async with get_client() as client:
        for pool in (*plan.pools, PROCESSES):
            with suppress(ObjectAlreadyExists):
                await create_pool(client, pool)
        await _make_blocks(plan)
        if await client.read_deployments(limit=1):
            return False
        for role, variable, name in roles:
            await create_deployments(client, role, variable, name)
    return True


async def create_deployments(client: PrefectClient, role: str, variable: str, name: str) -> None:
    """Create the deployments of a role as `prefect deploy` does, with a quarter of its requests."""
    text = (REPOSITORY / "deployments" / role / "prefect.yaml").read_text()
    text = text.replace(f"{{{{ ${variable} }}}}", name).replace("{{ release.version }}", release())
    for wanted in yaml.safe_load(text)["deployments"]:
        flow: Flow[Any, Any] = load_flow_from_entrypoint(wanted["entrypoint"])
        limit = wanted.get("concurrency_limit")
        await client.create_deployment(
            flow_id=await client.create_flow_from_name(flow.name),
            name=wanted["name"],
            version=wanted["version"],
            schedules=[_schedule(one) for one in wanted.get("schedules", [])],
            concurrency_limit=limit and limit["limit"],
            concurrency_options=limit and ConcurrencyOptions(collision_strategy=limit["collision_strategy"]),
            parameters=wanted.get("parameters"),
            description=wanted.get("description") or flow.description,
            work_pool_name=wanted["work_pool"]["name"],
            tags=wanted.get("tags"),
            entrypoint=wanted["entrypoint"],
            parameter_openapi_schema=parameter_schema(flow).model_dump(exclude_unset=True),
            pull_steps=[],
            enforce_parameter_schema=True,
        )


def _schedule(wanted: dict[str, Any]) -> DeploymentScheduleCreate:
    schedule = CronSchedule(cron=wanted["cron"])
    parameters = wanted.get("parameters", {})
    return DeploymentScheduleCreate(schedule=schedule, slug=wanted["slug"], parameters=parameters)


async def _make_blocks(plan: Plan) -> None:
    common = {
        "grid": await _save("grid", Grid(address_book=plan.book)),
        "services": await _save("grid", Services(url=plan.services_url)),
    }
    wallet = await _save(OPERATOR_NAME, Wallet(**plan.wallet))
    await _save(OPERATOR_NAME, Operator(wallet=wallet, **plan.operator, **common))
    for cluster in plan.clusters:
        parts = {
            "wallet": await _save(cluster.name, Wallet(**cluster.wallet)),
            "login": await _save(cluster.name, SlurmLogin(**cluster.login)),
            "benchmarks": await _save(cluster.name, Benchmarks(**cluster.benchmarks)),
        }
        await _save(cluster.name, Provider(cluster=cluster.name, **cluster.provider, **parts, **common))


async def _save(name: str, block: Block) -> Any:
    """Save a block under this name, and return it: another block may refer to it."""
    await block.asave(name, overwrite=True)
    return block


def _deploy(role: str, env: dict[str, str]) -> None:
    """`prefect deploy --all` for one role, called in process, because imports of a new process take seconds."""
    os.environ.update(env)
    sys.argv = ["prefect", "--no-prompt", "deploy", "--all", "--prefect-file", f"deployments/{role}/prefect.yaml"]
    try:
        prefect_command()
    except SystemExit as end:
        if end.code:
            raise ConfigurationError(f"The deployments of the {role} were refused.") from None


if __name__ == "__main__":
    os.chdir(REPOSITORY)
    # `prefect deploy` opens more than a hundred clients. Without a cache, each reads all certificates of this machine.
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
    register(Plan.model_validate_json(sys.stdin.read()))
