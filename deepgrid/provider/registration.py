"""Registration: what a cluster offers, as Slurm reports it and its owner prices it, proposed to the grid's operator.

A proposal is sent only when something changed, and it is in force once the operator approved it. Labels that
were measured stay as they stand on chain until the next measurement.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from deepgrid.benchmark.labels import measured_of, merge
from deepgrid.chain.offers import Standing, differences, read_versions
from deepgrid.lifecycle.job import Hardware, Label
from deepgrid.provider.cut import check_before_joining
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a registration; `changes` has a line for each difference that was proposed."""

    standing: Standing
    changes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        said = f"Proposed {'; '.join(self.changes)}" if self.changes else "Nothing changed"
        return f"{said}. The provider {self.standing.value}."


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
