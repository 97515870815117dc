"""`dps provider notify` and `dps operator notify`: Prefect's automations that notify a person."""

from __future__ import annotations

from typing import Annotated

import typer

from blocks.block_loading import prefect_faults
from deepgrid.cli.error_boundary import runs
from deepgrid.errors import InputError
from deployments.cli.serving import require_prefect
from orchestration.automations import deploy_automations, remove_automations, silent_pools

Block = Annotated[
    str | None, typer.Argument(metavar="[BLOCK]", help="A notification block of Prefect, such as slack-webhook/ops.")
]
Off = Annotated[bool, typer.Option("--off", help="Delete the automations.")]


@runs
async def notify(block: Block = None, off: Off = False) -> None:
    """Let Prefect notify you of wrong books, silent processes, low gas and degraded clusters."""
    require_prefect()
    if (block is None) is not off:
        raise InputError("Name the block, or give --off.", next_step="Such as: dps operator notify slack-webhook/ops")
    with prefect_faults("change automations"):
        if block is None:
            for name in await remove_automations():
                print(f"removed    {name}")
            return
        for name, what in (await deploy_automations(block)).items():
            print(f"{what:9}  {name}")
        for pool in await silent_pools():
            print(f"silent     work pool {pool}: start its process. Prefect notifies you only of later silence.")
