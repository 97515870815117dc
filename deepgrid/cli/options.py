"""Options that several verbs share. No option takes a private key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_KEY = Path("~/.dps/key")

KeyFile = Annotated[
    Path,
    typer.Option(
        "--key",
        envvar=["DPS_KEY_FILE", "ETH_PRIVATE_KEY_PATH"],
        help="File of your key; only you may be able to read it.",
    ),
]
BookFile = Annotated[
    Path | None,
    typer.Option("--book", envvar="DEEPGRID_BOOK", help="Address book of the grid.", show_default="~/.dps/grid.json"),
]
JobId = Annotated[int, typer.Argument(metavar="ID", help="Number of the job.", min=1)]
Amount = Annotated[str, typer.Argument(metavar="AMOUNT", help="Credits, such as 100 or 0.5.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; amounts are texts of wei, times unix seconds.")]
InWei = Annotated[bool, typer.Option("--wei", help="Amounts are wei, not credits (1 credit = 10^18 wei).")]
NoTimestamp = Annotated[bool, typer.Option("--no-timestamp", "--no-ts", help="Print the job's lines without the time.")]
NoApprove = Annotated[bool, typer.Option("--no-approve", help="Fail instead of changing the allowance of the grid.")]
ClusterName = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name of the provider block.")]
IgnoreUnknownFields = Annotated[
    bool,
    typer.Option("--ignore-unknown-fields", help="Warn of fields that workflow files do not have, and ignore them."),
]
Credits = Annotated[
    str | None, typer.Option("--credits", metavar="AMOUNT", help="Credits to lock, such as 100 or 0.5.")
]
Uses = Annotated[
    list[str] | None, typer.Option("--uses", metavar="KEY=VALUE", help="A label that the cluster must have.")
]
Affinities = Annotated[
    list[str] | None,
    typer.Option("--affinities", metavar="KEY<OP>VALUE", help="A condition on a label; < <= = >= > != :in:"),
]
MinTime = Annotated[
    str | None, typer.Option("--min-time", metavar="TIME", help="Time that the credits must buy, such as 90m or 2h.")
]
MaxPrice = Annotated[
    str | None, typer.Option("--max-price", metavar="AMOUNT", help="Maximum credits per minute; `any` for no ceiling.")
]
OnlyCluster = Annotated[
    str | None, typer.Option("--provider", metavar="CLUSTER", help="Show only the cluster with this name or address.")
]
