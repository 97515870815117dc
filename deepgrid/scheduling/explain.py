"""What each cluster offers for one job, or why it cannot take the job. Needs no numpy.

For one job and all clusters, this is the same decision as the tables make for all jobs. `quote` only gives the prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import affordable_minutes, rate_wei_per_minute
from deepgrid.lifecycle.job import Job, JobDefinition, Provider
from deepgrid.scheduling.fit import misfit, mismatch
from deepgrid.scheduling.market import ClusterState, Market, Resources, Row
from deepgrid.scheduling.occupancy import estimated_start, free_steps
from deepgrid.scheduling.speed import kind_of


def explain(job: Job, market: Market, refused: Mapping[str, str] | None = None) -> list[Row]:
    """Return one row per cluster: those that can take the job first, by price; then the others, by name.

    Args:
        job: A job, which may not be on chain yet.
        market: The clusters and the time.
        refused: Addresses of providers that gave the job back lately, with the reason.
    """
    rows = [_row(job, cluster, market.now, refused or {}) for cluster in market.clusters]
    return sorted(rows, key=lambda row: (not row.fits, row.rate_wei if row.fits else 0, row.cluster, row.provider))


def _row(job: Job, cluster: ClusterState, now: int, refused: Mapping[str, str]) -> Row:
    provider = cluster.provider
    rate = rate_wei_per_minute(job.definition, provider.prices)
    minutes = affordable_minutes(job.locked_wei, rate)
    obstacle = _obstacle(job, cluster, rate, minutes, refused)
    start = math.inf if obstacle else estimated_start(free_steps(cluster, now), Resources.of(job.definition))
    return Row(
        provider=provider.address,
        cluster=provider.name,
        obstacle=obstacle,
        rate_wei=rate,
        minutes=minutes,
        estimated_start=int(start) if math.isfinite(start) else 0,
        speed=cluster.speed.get(kind_of(job.definition), 0.0),
        reliability=cluster.record.value,
    )


def _obstacle(job: Job, cluster: ClusterState, rate: int, minutes: int, refused: Mapping[str, str]) -> str:
    """Return why the cluster cannot take the job; empty when it can."""
    provider, one, wishes = cluster.provider, job.definition, job.wishes
    if not provider.in_force:
        return "is barred from the grid" if provider.banned else "is not approved yet"
    if provider.address in refused:
        return f"gave it back lately ({refused[provider.address] or 'no reason given'})"
    if problem := misfit(one, provider.hardware):
        return problem
    if missing := mismatch(provider.labels, one.uses, one.affinity, one.gpus):
        return missing
    if minutes < max(1, wishes.min_minutes):
        wanted = "one minute costs" if wishes.min_minutes <= 1 else f"{wishes.min_minutes} minutes wanted; one costs"
        return f"{wanted} {format_credits(rate)} credits, {format_credits(job.locked_wei)} are locked"
    if wishes.max_rate_wei and rate > wishes.max_rate_wei:
        return f"costs {format_credits(rate)} credits per minute, above {format_credits(wishes.max_rate_wei)}"
    if not wishes.max_rate_wei and cluster.raised_at and cluster.raised_at >= job.submitted_at:
        return "raised its prices after the request, which has no highest price"
    return ""


@dataclass(frozen=True)
class Quote:
    """Clusters that can run a job, with the price per minute, cheapest first; and why the others cannot."""

    offers: tuple[tuple[Provider, int], ...]
    misfits: tuple[tuple[Provider, str], ...]


def quote(definition: JobDefinition, providers: Iterable[Provider]) -> Quote:
    """Return the prices of approved providers. Labels and free nodes are ignored."""
    offers, misfits = [], []
    for provider in providers:
        if provider.banned or not provider.approved:
            continue
        why = misfit(definition, provider.hardware)
        if why:
            misfits.append((provider, why))
        else:
            offers.append((provider, rate_wei_per_minute(definition, provider.prices)))
    return Quote(tuple(sorted(offers, key=lambda offer: offer[1])), tuple(misfits))
