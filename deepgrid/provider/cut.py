"""The platform's cut, as far as the provider accepts it: `max_cut_percent` of its block.

A job's cut is fixed when it is assigned. While the cut in force is too high, the cluster claims nothing. A claimed job
with too high a cut is given back before anything of it runs.
"""

from __future__ import annotations

from deepgrid.chain.figures import Cut
from deepgrid.errors import ConfigurationError
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.setup.checkup import Finding, Level


def too_high(cut_percent: int, most_percent: int) -> str:
    """Why a job with that cut is not run here; empty when it is."""
    if cut_percent <= most_percent:
        return ""
    return f"the platform keeps {cut_percent} % of a job's cost, this provider accepts at most {most_percent} %"


async def why_not_claimed(session: ProviderSession) -> str:
    """Why no job is claimed at the cut that is in force; empty when jobs are."""
    return too_high((await session.chain.cut()).percent, session.settings.max_cut_percent)


async def check_before_joining(session: ProviderSession) -> None:
    """Raise ConfigurationError when the grid's cut is above what the provider accepts."""
    if why := await why_not_claimed(session):
        raise ConfigurationError(
            f"The cluster does not join this grid: {why}.", next_step="Raise max_cut_percent of the provider block."
        )


def finding(cut: Cut, most_percent: int) -> Finding:
    """What `dps provider doctor` says of the cut, the announced one included."""
    step = "Raise max_cut_percent of the provider block, or leave the grid."
    if why := too_high(cut.percent, most_percent):
        return Finding("cut", Level.BAD, f"No job is claimed: {why}.", step)
    if cut.next_from and (why := too_high(cut.next_percent, most_percent)):
        words = f"From unix second {cut.next_from} on no job is claimed: {why}."
        return Finding("cut", Level.WARNING, words, step)
    return Finding("cut", Level.GOOD, f"The platform keeps {cut.percent} % of a job's cost.")
