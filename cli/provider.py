"""`dps provider`: the clusters of the grid, approving one, and the supervisor of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.border import runs
from cli.grid import address, as_anyone, as_customer
from cli.options import DEFAULT_KEY, AsJson, BookFile, KeyFile
from cli.screen import Screen, print_json
from cli.serving import serve
from cli.text import plural

if TYPE_CHECKING:
    from deepgrid.lifecycle.job import Provider

provider = typer.Typer(help="Look at clusters, approve one, run a supervisor.", no_args_is_help=True)


@provider.command("list")
@runs
async def list_providers(as_json: AsJson = False, book: BookFile = None) -> None:
    """List the clusters of the grid with their hardware, prices and labels."""
    async with as_anyone(book) as chain:
        found = await chain.providers()
    if as_json:
        print_json([_as_json(one) for one in found])
        return
    if not found:
        typer.echo("No cluster has joined this grid yet.", err=True)
    screen = Screen()
    for one in found:
        _show(screen, one)


@provider.command("approve")
@runs
async def approve(
    who: Annotated[str, typer.Argument(metavar="ADDRESS", help="Address of the provider.")],
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Put a provider's proposal in force; for the operator's key."""
    candidate = address(who)
    async with as_customer(key, book) as session:
        receipt = await session.writer.approve_provider(candidate)
    print(f"{candidate} is approved.")
    print(f"transaction {receipt.tx_hash}")


@provider.command("serve")
def serve_provider(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Name of the provider block.")],
) -> None:
    """Run the supervisor of a cluster: claim jobs, run them on Slurm, settle them; until stopped by a signal."""
    from blocks import Provider as ProviderBlock
    from deployments.supervisor import serve_provider as supervise

    serve(ProviderBlock, cluster, supervise)


def _state(one: Provider) -> str:
    if one.banned:
        return "banned"
    if not one.approved:
        return "waiting for approval"
    return "approved, a change waits for approval" if one.waiting_for_approval else "approved"


def _show(screen: Screen, one: Provider) -> None:
    from cli.story import NAME_LABEL, cluster_name
    from deepgrid.billing.credits import format_credits

    hardware, prices = one.hardware, one.prices
    gpus, memory_mb = sum(hardware.gpus_per_node), sum(hardware.mem_per_node_mb)
    labels = [f"{label.key}={label.value}" for label in one.labels if label.key != NAME_LABEL]
    screen.line((cluster_name(one), "bold"), f"  {_state(one)}")
    screen.pairs(
        [
            ("address", one.address),
            (
                "hardware",
                f"{plural(hardware.nodes, 'node')}: {plural(sum(hardware.cpus_per_node), 'CPU')}, {memory_mb} MB,"
                f" {plural(gpus, 'GPU') if gpus else 'no GPU'}",
            ),
            (
                "a minute",
                f"{format_credits(prices.cpu_wei_per_minute)} a CPU,"
                f" {format_credits(prices.mem_wei_per_mb_minute)} a MB,"
                f" {format_credits(prices.gpu_wei_per_minute)} a GPU (credits)",
            ),
            ("labels", "  ".join(labels)),
        ]
    )


def _as_json(one: Provider) -> dict[str, Any]:
    from cli.story import cluster_name

    hardware, prices = one.hardware, one.prices
    return {
        "address": one.address,
        "name": cluster_name(one),
        "approved": one.approved,
        "banned": one.banned,
        "waiting_for_approval": one.waiting_for_approval,
        "nodes": hardware.nodes,
        "cpus_per_node": list(hardware.cpus_per_node),
        "mem_per_node_mb": list(hardware.mem_per_node_mb),
        "gpus_per_node": list(hardware.gpus_per_node),
        "cpu_wei_per_minute": str(prices.cpu_wei_per_minute),
        "mem_wei_per_mb_minute": str(prices.mem_wei_per_mb_minute),
        "gpu_wei_per_minute": str(prices.gpu_wei_per_minute),
        "labels": [{"key": label.key, "value": label.value} for label in one.labels],
    }
