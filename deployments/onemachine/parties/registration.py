"""Registers the grid's roles at Prefect: work pools, blocks, deployments.

It runs as a separate process, because Prefect reads its settings at import: `python -m
deployments.onemachine.parties.registration`, with its plan as JSON on standard input. At the end it stores the plan's
digest in a Prefect variable. While the digest is unchanged, there is nothing to do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from prefect.cli import app as prefect_command
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.variables import Variable
from prefect.workers.process import ProcessWorker

from blocks import Benchmarks, Grid, Operator, Provider, Services, SlurmLogin, Wallet
from deepgrid.errors import ConfigurationError
from deployments.onemachine.parties.registration_plan import OPERATOR_NAME, REGISTERED, ClusterPlan, Plan
from orchestration.pools import PROCESSES
from orchestration.worker import InProcessWorker

REPOSITORY = Path(__file__).resolve().parents[3]


def register(plan: Plan) -> None:
    """Create the missing objects of `plan` at Prefect, and update the others."""
    asyncio.run(_make_pools_and_blocks(plan))
    _deploy("operator", {"OPERATOR": OPERATOR_NAME})
    for cluster in plan.clusters:
        _deploy("provider", {"CLUSTER": cluster.name})
    asyncio.run(_mark_done(plan))


async def _make_pools_and_blocks(plan: Plan) -> None:
    async with get_client() as client:
        for pool in plan.pools:
            await _make_pool(client, pool, InProcessWorker)
        await _make_pool(client, PROCESSES, ProcessWorker)
    await _save_blocks(plan)


async def _mark_done(plan: Plan) -> None:
    await Variable.aset(REGISTERED, plan.digest(), overwrite=True)


async def _make_pool(client: PrefectClient, name: str, worker: type[InProcessWorker] | type[ProcessWorker]) -> None:
    template = worker.get_default_base_job_template()
    try:
        await client.create_work_pool(WorkPoolCreate(name=name, type=worker.type, base_job_template=template))
    except ObjectAlreadyExists:
        return


async def _save_blocks(plan: Plan) -> None:
    grid = Grid(address_book=plan.book)
    await grid.asave("grid", overwrite=True)
    services = Services(url=plan.services_url)
    await services.asave("grid", overwrite=True)
    operator = Wallet(address=plan.operator_address, key_file=plan.operator_key)
    await operator.asave(OPERATOR_NAME, overwrite=True)
    role = Operator(
        grid=grid, wallet=operator, services=services, state=plan.operator_state, approve_label_changes=True,
        metrics_port=plan.operator_metrics_port,
    )  # fmt: skip
    await role.asave(OPERATOR_NAME, overwrite=True)
    for cluster in plan.clusters:
        await _save_cluster(grid, services, cluster)


async def _save_cluster(grid: Grid, services: Services, plan: ClusterPlan) -> None:
    wallet = Wallet(address=plan.address, key_file=plan.key_file)
    await wallet.asave(plan.name, overwrite=True)
    login = SlurmLogin(**plan.login)
    await login.asave(plan.name, overwrite=True)
    benchmarks = Benchmarks(**plan.benchmarks)
    await benchmarks.asave(plan.name, overwrite=True)
    provider = Provider(
        cluster=plan.name,
        grid=grid,
        wallet=wallet,
        services=services,
        login=login,
        labels=plan.labels,
        benchmarks=benchmarks,
        state=plan.state,
        metrics_port=plan.metrics_port,
        trust_customers=plan.trust_customers,
        accepted_gaps=plan.accepted_gaps,
        claim_stays_s=plan.claim_stays_s,
        **plan.prices,
    )
    await provider.asave(plan.name, overwrite=True)


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
    register(Plan.model_validate_json(sys.stdin.read()))
