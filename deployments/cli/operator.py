"""`dps operator serve`: the operator's process."""

from __future__ import annotations

from typing import Annotated

import typer

from deployments.cli.serving import serve
from deployments.operator import process


def serve_operator(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator block.")]) -> None:
    """Follow the chain and assign jobs until a signal stops it."""
    serve(process.serve_operator, name)
