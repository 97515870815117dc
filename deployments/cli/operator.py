"""`dps operator serve`: the meta-scheduler as a process."""

from __future__ import annotations

from typing import Annotated

import typer

from deployments.cli.serving import serve
from deployments.operator.process import serve_operator as operate


def serve_operator(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator block.")]) -> None:
    """Follow the chain and assign jobs, until stopped by a signal."""
    serve(operate, name)
