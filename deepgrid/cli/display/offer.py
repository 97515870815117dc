"""Shows clusters with hardware, prices and labels for `dps provider`, as text and as JSON."""

from __future__ import annotations

import string
from dataclasses import asdict
from typing import Any

from deepgrid.benchmark.labels import DEGRADED, DROP_PERCENT
from deepgrid.billing.credits import format_credits
from deepgrid.chain.node.values import Queues, TrackRecord
from deepgrid.chain.offers import Versions, differences, proposal_hash
from deepgrid.cli.display.screen import Screen
from deepgrid.client.display.text import plural
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Provider


def state_words(one: Provider) -> str:
    """Return the provider's state in words: approved, waiting or banned."""
    if one.banned:
        return "banned"
    if not one.approved:
        return "waiting for approval"
    return "approved, a change waits for approval" if one.waiting_for_approval else "approved"


def show_offer(screen: Screen, one: Provider) -> None:
    hardware, prices = one.hardware, one.prices
    gpus, memory_mb = sum(hardware.gpus_per_node), sum(hardware.mem_per_node_mb)
    labels = [f"{label.key}={label.value}" for label in one.labels if label.key != "name"]
    screen.line((one.name, "bold"), f"  {state_words(one)}")
    screen.pairs(
        [
            ("address", one.address),
            (
                "hardware",
                f"{plural(hardware.nodes, 'node')}: {plural(sum(hardware.cpus_per_node), 'CPU')}, {memory_mb} MB,"
                f" {plural(gpus, 'GPU') if gpus else 'no GPU'}",
            ),
            (
                "per minute",
                f"{format_credits(prices.cpu_wei_per_minute)} per CPU,"
                f" {format_credits(prices.mem_wei_per_mb_minute)} per MB,"
                f" {format_credits(prices.gpu_wei_per_minute)} per GPU (credits)",
            ),
            ("labels", "  ".join(labels)),
        ]
    )


def waiting_change(versions: Versions) -> tuple[str, ...]:
    """Return the changes that an approval would make, one line each: `what: old -> new`.

    Empty for a first proposal, or if no proposal waits.
    """
    if versions.proposed is None or versions.approved is None:
        return ()
    new = versions.proposed
    return differences(versions.approved, new.hardware, new.prices, new.labels)


def show_standing(screen: Screen, versions: Versions, record: TrackRecord, queues: Queues) -> None:
    """Print a provider: its offer, its waiting proposal, its past jobs and its current jobs."""
    newest = versions.approved or versions.proposed
    if newest is not None:
        show_offer(screen, newest)
        show_drop(screen, versions.proposed or newest)
    if versions.approved is None:
        show_hash(screen, versions)
    else:
        show_proposal(screen, versions)
    screen.heading("Track record")
    screen.pairs([(name.replace("_", " "), str(count)) for name, count in asdict(record).items()])
    screen.heading("Queues")
    screen.pairs([(name, str(count)) for name, count in _queues(queues).items()])


def show_drop(screen: Screen, one: Provider) -> None:
    """Print which measured figure dropped. Print nothing if none did."""
    dropped = {label.key: label.value for label in one.labels}.get(DEGRADED)
    if dropped:
        screen.pairs([("degraded", f"{dropped} is more than {DROP_PERCENT} % worse than it usually is")])


def show_proposal(screen: Screen, versions: Versions) -> None:
    """Print the waiting proposal and its hash. Print nothing if none waits."""
    changes = waiting_change(versions)
    if changes:
        screen.heading("Waits for approval")
        screen.pairs([(name, change) for name, _, change in (line.partition(": ") for line in changes)])
    elif versions.approved is None and versions.proposed is not None:
        show_offer(screen, versions.proposed)
    show_hash(screen, versions)


def show_hash(screen: Screen, versions: Versions) -> None:
    """Print the hash of the waiting proposal. Print nothing if none waits."""
    if versions.proposed is not None:
        screen.pairs([("proposal", f"0x{hash_of(versions).hex()}")])


def hash_of(versions: Versions) -> bytes:
    """Return the hash of the waiting proposal, or zeros if none waits."""
    return bytes(32) if versions.proposed is None else proposal_hash(versions.proposed)


def read_hash(text: str) -> bytes:
    """Parse the hash of a proposal. Raises InputError."""
    digits = text.removeprefix("0x")
    if len(digits) != 64 or not all(digit in string.hexdigits for digit in digits):
        raise InputError(
            "A proposal's hash is 0x and 64 hexadecimal digits.", next_step="`dps provider status` shows it."
        )
    return bytes.fromhex(digits)


def standing_as_json(address: str, versions: Versions, record: TrackRecord, queues: Queues) -> dict[str, Any]:
    """Return the same as JSON values. Missing versions are null."""
    return {
        "address": address,
        "standing": versions.standing.name.lower(),
        "approved": None if versions.approved is None else offer_as_json(versions.approved),
        "proposed": None if versions.proposed is None else offer_as_json(versions.proposed),
        "proposal_hash": None if versions.proposed is None else f"0x{hash_of(versions).hex()}",
        "changes": list(waiting_change(versions)),
        "track_record": asdict(record),
        "queues": {name.replace(" ", "_"): count for name, count in _queues(queues).items()},
    }


def _queues(queues: Queues) -> dict[str, int]:
    return {"to claim": queues.claimable, "to cancel": queues.cancelling, "topped up": queues.topped_up}


def offer_as_json(one: Provider) -> dict[str, Any]:
    """Return a provider as JSON values, with prices as texts of wei."""
    hardware, prices = one.hardware, one.prices
    return {
        "address": one.address,
        "name": one.name,
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
