"""`dps operator`: the contracts of the grid, and the meta-scheduler."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

from deepgrid.cli.contracts.administration import close_grid, constants, open_grid, withdraw
from deepgrid.cli.contracts.deploy import deploy_contracts
from deepgrid.cli.contracts.moving import move, retire_grid
from deepgrid.cli.lazy import group_with
from deepgrid.cli.project import project_verbs

operator = typer.Typer(
    cls=group_with(TyperGroup, *project_verbs("operator")),
    help="Deploy and administer the contracts, run the meta-scheduler.",
    no_args_is_help=True,
)


operator.command("deploy")(deploy_contracts)
operator.command("constants")(constants)
operator.command("withdraw")(withdraw)
operator.command("open")(open_grid)
operator.command("close")(close_grid)
operator.command("retire")(retire_grid)
operator.command("move-credits")(move)
