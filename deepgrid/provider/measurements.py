"""Measures a provider's cluster with one program at a time, and proposes the results as labels."""

from __future__ import annotations

import time

from deepgrid.benchmark import measuring
from deepgrid.benchmark.labels import has_moved, measured_of
from deepgrid.benchmark.measuring import Site
from deepgrid.benchmark.outcome import Outcome, update_labels
from deepgrid.benchmark.settings import Program
from deepgrid.chain.offers import read_versions
from deepgrid.lifecycle.job import Label
from deepgrid.provider import registration
from deepgrid.provider.benchmark_archive import BenchmarkArchive
from deepgrid.provider.registration import read_hardware
from deepgrid.provider.session import ProviderSession


async def last_measured(session: ProviderSession) -> tuple[Label, ...]:
    """Return the provider's measured labels on chain, proposed or in force, without the labels that it sets itself."""
    newest = (await read_versions(session.chain, session.address)).newest
    return update_labels(measured_of(newest.labels), (), session.settings.labels) if newest else ()


async def measure(session: ProviderSession, program: Program) -> Outcome:
    """Run one program as a Slurm job and read its output. A job that is left from an earlier attempt is cancelled
    first.

    Nodes that take no jobs are left out, unless the settings say `unresponsive`. Raises SlurmError when the job fails
    or prints no result.
    """
    settings = session.settings.benchmarks
    whole = await session.cluster.hardware(usable_only=False)
    usable = whole if settings.unresponsive else await session.cluster.hardware()
    missing = whole.nodes - usable.nodes
    site = Site(usable, session.settings.storage, session.settings.containers.apptainer)
    wanted = measuring.request(program, site, settings)
    if wanted is None:
        return Outcome(program)
    output = await session.cluster.batch.run(
        f"deepgrid-benchmark-{session.settings.cluster}-{program}",
        wanted.script,
        wanted.options,
        limit_minutes=settings.time_limit_minutes,
        wait_minutes=settings.wait_minutes,
        partition=settings.partition,
    )
    return measuring.read(program, output, settings, wanted, missing)


def archive_of(session: ProviderSession) -> BenchmarkArchive:
    """Return the archive of this cluster's results."""
    return BenchmarkArchive(session.settings.state / "benchmarks" / session.settings.cluster)


async def measure_and_keep(session: ProviderSession, archive: BenchmarkArchive, program: Program) -> Outcome:
    """Measure, and save the result at once, so that a restart in the middle of a round loses no finished program."""
    outcome = await measure(session, program)
    if outcome.labels:
        archive.keep(outcome, int(time.time()))
    return outcome


async def propose_if_moved(
    session: ProviderSession, old: tuple[Label, ...], new: tuple[Label, ...]
) -> registration.Outcome | None:
    """Propose `new` together with the provider's own labels. Returns None if no label changed by more than 5 %."""
    if not has_moved(old, new):
        return None
    return await registration.propose(session, await read_hardware(session), new)
