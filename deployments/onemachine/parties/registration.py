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

from prefect.blocks.core import Block
from prefect.cli import app as prefect_command
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectAlreadyExists
from prefect.variables import Variable

from blocks import Benchmarks, Grid, Operator, Provider, Services, SlurmLogin, Wallet
from deepgrid.errors import ConfigurationError
from deployments.onemachine.parties.party_plan import OPERATOR_NAME, REGISTERED, REPOSITORY, Plan
from deployments.provider.setup.prefect_plan import create_pool
from orchestration.pools import PROCESSES


def register(plan: Plan) -> None:
    """Create the missing objects of `plan` at Prefect, and update the others."""
    asyncio.run(_make_pools_and_blocks(plan))
    _deploy("operator", {"OPERATOR": OPERATOR_NAME})
    for cluster in plan.clusters:
        _deploy("provider", {"CLUSTER": cluster.name})
    asyncio.run(Variable.aset(REGISTERED, plan.digest(), overwrite=True))


async def _make_pools_and_blocks(plan: Plan) -> None:
    async with get_client() as client:
        for pool in (*plan.pools, PROCESSES):
            with suppress(ObjectAlreadyExists):
                await create_pool(client, pool)
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
