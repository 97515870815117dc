"""Registration: what a cluster offers, as Slurm reports it and its owner prices it, proposed to the grid's operator.

A proposal is sent only when something changed, and it is in force once the operator approved it. Labels that
were measured stay as they stand on chain until the next measurement.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum

from deepgrid.benchmark.labels import measured_of, merge
from deepgrid.chain.client import Chain
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.provider.cut import check_before_joining
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 2.0


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a registration; `changes` has a line for each difference that was proposed."""

    standing: Standing
    changes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        said = f"Proposed {'; '.join(self.changes)}" if self.changes else "Nothing changed"
        return f"{said}. The provider {self.standing.value}."


async def read_versions(chain: Chain, address: str) -> Versions:
    """What the chain says of the provider at `address`."""
    proposed = await chain.proposal(address)
    try:
        found = await chain.provider(address)
    except NotFound:
        return Versions(None, proposed)
    return Versions(found if found.approved else None, proposed)


async def read_hardware(session: ProviderSession) -> Hardware:
    """All nodes of the partition, those that are away for a while too, or each of their naps would be a change."""
    return await session.cluster.hardware(responding_only=False)


async def propose(session: ProviderSession, hardware: Hardware, measured: tuple[Label, ...] | None = None) -> Outcome:
    """Register the hardware with the configured prices and labels, if that is not what stands already.

    Without `measured`, the measured labels that stand on chain are kept. Raises ContractError when the
    provider is banned.
    """
    versions = await read_versions(session.chain, session.address)
    newest = versions.newest
    if measured is None:
        measured = measured_of(newest.labels) if newest else ()
    labels = merge(session.settings.labels, measured)
    changes = differences(newest, hardware, session.settings.prices, labels)
    if not changes:
        return Outcome(versions.standing)
    await session.writer.register(hardware, session.settings.prices, labels)
    return Outcome((await read_versions(session.chain, session.address)).standing, changes)


async def register(session: ProviderSession) -> Outcome:
    """All of it: look at the platform's cut, ask Slurm whether it works and what it has, propose what changed.

    Warns of missing guards. Raises ConfigurationError when the cut is above what the provider accepts.
    """
    await check_before_joining(session)
    await session.cluster.health()
    if closed := await session.gate.why_closed():
        logger.warning("no job will be claimed: %s", closed)
    return await propose(session, await read_hardware(session))


async def await_approval(session: ProviderSession, within_s: float) -> Standing:
    """Wait until nothing waits for the operator, or until `within_s` seconds are over; how the provider stands then."""
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        standing = (await read_versions(session.chain, session.address)).standing
        if not standing.waits or asyncio.get_running_loop().time() >= deadline:
            return standing
        await asyncio.sleep(LOOK_AGAIN_S)


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
