"""Registration: proposes the cluster's hardware, as Slurm reports it, with prices and labels to the grid's operator.

A proposal is sent only when something changed. It is in force once the operator has approved it. Measured labels
stay as they are on chain until the next measurement. Labels of features follow each look at a node.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from deepgrid.benchmark.labels import measured_of, merge
from deepgrid.chain.offers import Standing, differences, read_versions
from deepgrid.lifecycle.gpu_types import with_gpu_types
from deepgrid.lifecycle.job import Hardware, Label
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.terms import check_before_joining
from deepgrid.slurm.setup.features import NodeFeatures

logger = logging.getLogger(__name__)

APPROVAL_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a registration. `changes` has one line per proposed difference."""

    standing: Standing
    changes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        said = f"Proposed {'; '.join(self.changes)}" if self.changes else "Nothing changed"
        return f"{said}. The provider {self.standing.value}."


async def read_hardware(session: ProviderSession) -> Hardware:
    """Read the nodes of the partition from Slurm. Nodes that do not respond count too, so an outage is not a change."""
    return await session.cluster.hardware(usable_only=False)


async def look_at_features(session: ProviderSession) -> NodeFeatures | None:
    """Look at a node for what jobs may need. Returns what the last successful look found."""
    return await session.features.look(session.cluster, session.intervals.look_at_node_s)


async def features_changed(session: ProviderSession) -> bool:
    """Look at a node, and return whether its features differ from the labels of this provider's newest offer."""
    await look_at_features(session)
    newest = (await read_versions(session.chain, session.address)).newest
    if newest is None:
        return False
    measured = measured_of(newest.labels)
    own = session.settings.labels
    return merge(own, session.features.in_labels(measured)) != merge(own, measured)


async def propose(session: ProviderSession, hardware: Hardware, measured: tuple[Label, ...] | None = None) -> Outcome:
    """Propose hardware, prices and labels to the operator, if something changed.

    Without `measured`, the measured labels on chain are kept. Feature labels are as last observed, and labels of GPU
    types are as Slurm reports them. Raises ContractError when the provider is banned.
    """
    versions = await read_versions(session.chain, session.address)
    newest = versions.newest
    if measured is None:
        measured = measured_of(newest.labels) if newest else ()
    gpus = await session.cluster.gpu_types()
    labels = merge(session.settings.labels, with_gpu_types(session.features.in_labels(measured), gpus))
    changes = differences(newest, hardware, session.settings.prices, labels)
    if not changes:
        return Outcome(versions.standing)
    await session.writer.register(hardware, session.settings.prices, labels)
    return Outcome((await read_versions(session.chain, session.address)).standing, changes)


async def register(session: ProviderSession) -> Outcome:
    """Register the cluster: check the platform's cut and Slurm's health, read the hardware, propose changes.

    Logs a warning for missing guards. Raises ConfigurationError when the cut is above the provider's limit.
    """
    await check_before_joining(session)
    await session.cluster.health()
    if closed := await session.gate.why_closed():
        logger.warning("no job is claimed: %s", closed)
    await look_at_features(session)
    return await propose(session, await read_hardware(session))


async def await_approval(session: ProviderSession, within_s: float) -> Standing:
    """Wait up to `within_s` seconds for the operator's approval; returns the provider's standing then."""
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        standing = (await read_versions(session.chain, session.address)).standing
        if not standing.waits or asyncio.get_running_loop().time() >= deadline:
            return standing
        await asyncio.sleep(APPROVAL_POLL_S)
