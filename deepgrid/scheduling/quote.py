"""The price of a job at the clusters of a grid. All money is in wei."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.lifecycle.job import JobDefinition, Provider
from deepgrid.scheduling.fit import misfit


@dataclass(frozen=True)
class Quote:
    """Clusters that can run a job, with the price per minute, cheapest first; and why the others cannot."""

    offers: tuple[tuple[Provider, int], ...]
    misfits: tuple[tuple[Provider, str], ...]


def quote(definition: JobDefinition, providers: Iterable[Provider]) -> Quote:
    """The prices of approved providers. Labels and free nodes are ignored."""
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
