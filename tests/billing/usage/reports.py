"""Usage reports of generated histories, over the middle day and the day before it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from deepgrid.billing.entries import Span
from deepgrid.billing.usage.capacity import Capacity, OfferChange, Offers
from deepgrid.billing.usage.usage_figures import Usage, UsageReport, usage
from deepgrid.lifecycle.job import JobDefinition
from tests.billing.histories import ANOTHER, DAY, ME, MIDNIGHT, History, Plan, block_of, plans

DAY_S = 86400
BEFORE = Span(MIDNIGHT - DAY_S, MIDNIGHT)
NODES = Capacity(cpus=64, mem_mb=256_000, gpus=4)
OFFERS = Offers(
    (OfferChange(ME, BEFORE.since, NODES), OfferChange(ANOTHER, BEFORE.since, NODES)), {ME: "alpha", ANOTHER: "beta"}
)
CUSTOMERS = ("0xAda", "0xBob", "0xCleo")

# Plans of several customers with jobs of several sizes, around the middle day.
usage_plans = st.builds(
    lambda plan, customer, gpus, cpus: replace(plan, customer=customer, asked=JobDefinition(gpus, 100, cpus, 2, "")),
    plans,
    st.sampled_from(CUSTOMERS),
    st.integers(0, 4),
    st.integers(1, 8),
)


def history(*some: Plan, span: Span = DAY) -> History:
    made = History(span)
    for plan in some:
        made.add(plan)
    return made


def usage_of(made: History, span: Span, provider: str | None = None, offers: Offers = OFFERS) -> Usage:
    """Return the figures of a span, from a ledger that was read for it alone."""
    return usage(replace(made, span=span).ledger(), span, offers, provider)


def report_of(made: History, provider: str | None = None, offers: Offers = OFFERS) -> UsageReport:
    """Return the report of the middle day, from one ledger that was read for both days."""
    whole = replace(made, span=Span(BEFORE.since, DAY.until)).ledger()
    now = whole.part(block_of(DAY.since), whole.last_block)
    before = whole.part(whole.first_block, block_of(DAY.since) - 1)
    figures = usage(now, DAY, offers, provider), usage(before, BEFORE, offers, provider)
    return UsageReport("alpha" if provider else "grid", provider, *figures, offers)
