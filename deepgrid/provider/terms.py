"""The terms on which a provider takes jobs, besides what its cluster can run."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.provider.cut import too_high
from deepgrid.provider.session import ProviderSettings

REFUSED_CUSTOMER = "this cluster takes no jobs of this customer; its provider can say why"


def why_unacceptable(job: Job, settings: ProviderSettings) -> str:
    """Why this provider gives the job back unstarted, for its customer to read; empty when it takes it."""
    if job.customer in settings.refused_customers:
        return REFUSED_CUSTOMER
    return too_high(job.cut_percent, settings.max_cut_percent)
