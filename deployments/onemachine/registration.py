"""Tells Prefect of the grid's roles: work pools, blocks, deployments.

A process of its own (`python -m deployments.onemachine.registration`, its plan as JSON on standard
input), because Prefect reads its settings when it is imported. At the end it leaves the plan's
digest in a Prefect variable; as long as that stands, there is nothing to do again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.variables import Variable

from blocks import Grid, Operator, Provider, SlurmLogin, Wallet
from deepgrid.errors import ConfigurationError
from deployments.onemachine.registration_plan import OPERATOR_NAME, REGISTERED, ClusterPlan, Plan
from deployments.worker import WORKER_TYPE, InProcessWorker

REPOSITORY = Path(__file__).resolve().parents[2]


async def register(plan: Plan) -> None:
    """Do everything of `plan` that Prefect does not have, and bring the rest up to date."""
    async with get_client() as client:
        for pool in plan.pools:
            await _make_pool(client, pool)
    await _save_blocks(plan)
    roles = [("operator", {"OPERATOR": OPERATOR_NAME})]
    roles += [("provider", {"CLUSTER": cluster.name}) for cluster in plan.clusters]
    await asyncio.gather(*(_deploy(role, env) for role, env in roles))
    await Variable.aset(REGISTERED, plan.digest(), overwrite=True)


async def _make_pool(client: PrefectClient, name: str) -> None:
    template = InProcessWorker.get_default_base_job_template()
    try:
        await client.create_work_pool(WorkPoolCreate(name=name, type=WORKER_TYPE, base_job_template=template))
    except ObjectAlreadyExists:
        return


async def _save_blocks(plan: Plan) -> None:
    grid = Grid(address_book=plan.book)
    await grid.asave("grid", overwrite=True)
    operator = Wallet(address=plan.operator_address, key_file=plan.operator_key)
    await operator.asave(OPERATOR_NAME, overwrite=True)
    await Operator(grid=grid, wallet=operator, state=plan.operator_state).asave(OPERATOR_NAME, overwrite=True)
    for cluster in plan.clusters:
        await _save_cluster(grid, cluster)


async def _save_cluster(grid: Grid, plan: ClusterPlan) -> None:
    wallet = Wallet(address=plan.address, key_file=plan.key_file)
    await wallet.asave(plan.name, overwrite=True)
    login = SlurmLogin(**plan.login)
    await login.asave(plan.name, overwrite=True)
    provider = Provider(
        cluster=plan.name, grid=grid, wallet=wallet, login=login, labels=plan.labels, state=plan.state, **plan.prices
    )
    await provider.asave(plan.name, overwrite=True)


async def _deploy(role: str, env: dict[str, str]) -> None:
    """`prefect deploy --all` for one role, as its operators do it."""
    argv = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    process = await asyncio.create_subprocess_exec(
        *argv, "--prefect-file", f"deployments/{role}/prefect.yaml", cwd=REPOSITORY, env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode:
        raise ConfigurationError(f"The deployments of the {role} were refused: {output.decode(errors='replace')}")


if __name__ == "__main__":
    asyncio.run(register(Plan.model_validate_json(sys.stdin.read())))
