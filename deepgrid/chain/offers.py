"""What a provider offers on chain: the approved version, the proposed one, and how they differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deepgrid.chain.client import Chain
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider


class Standing(Enum):
    """How a provider stands with the operator, in words that follow its name."""

    UNKNOWN = "is not registered"
    WAITING = "waits for approval"
    CHANGE_WAITS = "is approved; a change waits for approval"
    APPROVED = "is approved"
    BANNED = "is banned"

    @property
    def waits(self) -> bool:
        """Whether the operator has something to approve."""
        return self in (Standing.WAITING, Standing.CHANGE_WAITS)

    @property
    def in_force(self) -> bool:
        """Whether the provider may be given jobs."""
        return self in (Standing.CHANGE_WAITS, Standing.APPROVED)


@dataclass(frozen=True, slots=True)
class Versions:
    """What stands on chain for a provider: what is in force, and what it proposed and nobody approved yet."""

    approved: Provider | None
    proposed: Provider | None

    @property
    def newest(self) -> Provider | None:
        return self.proposed or self.approved

    @property
    def standing(self) -> Standing:
        if self.newest is None:
            return Standing.UNKNOWN
        if self.newest.banned:
            return Standing.BANNED
        if self.proposed is None:
            return Standing.APPROVED
        return Standing.CHANGE_WAITS if self.approved else Standing.WAITING


async def read_versions(chain: Chain, address: str) -> Versions:
    """What the chain says of the provider at `address`."""
    proposed = await chain.proposal(address)
    try:
        found = await chain.provider(address)
    except NotFound:
        return Versions(None, proposed)
    return Versions(found if found.approved else None, proposed)


def differences(old: Provider | None, hardware: Hardware, prices: Prices, labels: tuple[Label, ...]) -> tuple[str, ...]:
    """What would change, a line each, `what: old -> new`; for a first registration all of it."""
    before = _facts(old.hardware, old.prices, old.labels) if old else {}
    after = _facts(hardware, prices, labels)
    keys = sorted(before.keys() | after.keys(), key=lambda key: (key.startswith("label "), key))
    return tuple(
        f"{key}: {before.get(key, 'none')} -> {after.get(key, 'none')}" if old else f"{key}: {after[key]}"
        for key in keys
        if before.get(key) != after.get(key)
    )


def _facts(hardware: Hardware, prices: Prices, labels: tuple[Label, ...]) -> dict[str, str]:
    figures = {
        "CPUs by node": hardware.cpus_per_node,
        "GPUs by node": hardware.gpus_per_node,
        "MB by node": hardware.mem_per_node_mb,
    }
    return {
        **{name: ", ".join(map(str, each)) for name, each in figures.items()},
        "wei a CPU and minute": str(prices.cpu_wei_per_minute),
        "wei a GPU and minute": str(prices.gpu_wei_per_minute),
        "wei a MB and minute": str(prices.mem_wei_per_mb_minute),
        **{f"label {label.key}": label.value for label in labels},
    }
