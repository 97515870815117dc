"""The provider's terms: refused customers, and a limit on the platform's cut (`max_cut_percent` of its block).

A job's cut is fixed when the job is assigned. While the cut in force is above the limit, the cluster claims nothing.
A claimed job with a cut above the limit is given back before it starts.
"""

from __future__ import annotations

from deepgrid.chain.node.values import Cut
from deepgrid.errors import ConfigurationError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.job import Job
from deepgrid.provider.session import ProviderSession, ProviderSettings

REFUSED_CUSTOMER = "this cluster takes no jobs of this customer; its provider can say why"


def why_unacceptable(job: Job, settings: ProviderSettings) -> str:
    """Return the reason why this provider refuses the job, for its customer to read; empty if it accepts the job."""
    if job.customer in settings.refused_customers:
        return REFUSED_CUSTOMER
    return too_high(job.cut_percent, settings.max_cut_percent)


def too_high(cut_percent: int, most_percent: int) -> str:
    """Return the reason why no job with that cut runs here; empty if the cut is accepted."""
    if cut_percent <= most_percent:
        return ""
    return f"the platform keeps {cut_percent} % of a job's cost, this provider accepts at most {most_percent} %"


async def why_not_claimed(session: ProviderSession) -> str:
    """Return the reason why no job is claimed at the cut in force; empty if the cut is accepted."""
    return too_high((await session.chain.cut()).percent, session.settings.max_cut_percent)


async def check_before_joining(session: ProviderSession) -> None:
    """Raise ConfigurationError when the grid's cut is above the provider's limit."""
    if why := await why_not_claimed(session):
        raise ConfigurationError(
            f"The cluster does not join this grid: {why}.", next_step="Raise max_cut_percent of the provider block."
        )


def finding(cut: Cut, most_percent: int) -> Finding:
    """Return the finding of `dps provider doctor` on the cut in force and on an announced one."""
    step = "Raise max_cut_percent of the provider block, or leave the grid."
    if why := too_high(cut.percent, most_percent):
        return Finding("cut", Level.BAD, f"No job is claimed: {why}.", step)
    if cut.next_from and (why := too_high(cut.next_percent, most_percent)):
        words = f"From unix second {cut.next_from} on no job is claimed: {why}."
        return Finding("cut", Level.WARNING, words, step)
    return Finding("cut", Level.GOOD, f"The platform keeps {cut.percent} % of a job's cost.")
