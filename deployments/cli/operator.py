"""`dps operator serve` and `doctor`: the operator's process, and what is wrong with its set-up."""

from __future__ import annotations

from typing import Annotated

import typer
from prefect.settings import PREFECT_API_URL

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.cli.display.screen import report
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import AsJson
from deployments.cli.serving import examine_diagrams, examine_prefect, require_prefect, serve
from deployments.operator import process
from deployments.operator.operator_checks import examine_deployments, examine_operator

OperatorName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator block.")]


@runs
async def doctor(name: OperatorName, as_json: AsJson = False) -> None:
    """Find what is wrong with an operator's set-up: Prefect, deployments, key, chain, roles, gas, services."""
    require_prefect()
    settings = (await load_block(Operator, name)).settings()
    prefect = [await examine_prefect(PREFECT_API_URL.value() or ""), await examine_diagrams()]
    findings = [*prefect, *await examine_deployments(name), *await examine_operator(settings)]
    report(findings, f"the operator {name}", as_json=as_json)


def serve_operator(name: OperatorName) -> None:
    """Follow the chain and assign jobs until a signal stops it."""
    serve(process.serve_operator, name)
