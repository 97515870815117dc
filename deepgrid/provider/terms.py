"""The provider's terms: which customers and which cut it accepts."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.provider.cut import too_high
from deepgrid.provider.session import ProviderSettings

REFUSED_CUSTOMER = "this cluster takes no jobs of this customer; its provider can say why"


def why_unacceptable(job: Job, settings: ProviderSettings) -> str:
    """The reason why this provider refuses the job, for its customer to read; empty if it accepts the job."""
    if job.customer in settings.refused_customers:
        return REFUSED_CUSTOMER
    return too_high(job.cut_percent, settings.max_cut_percent)
