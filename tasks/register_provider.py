"""The side effects of `register_provider`."""

from __future__ import annotations

from deepgrid.chain.offers import Standing
from deepgrid.lifecycle.job import Hardware
from deepgrid.provider import registration
from deepgrid.provider.registration import Outcome
from deepgrid.provider.session import ProviderSession
from runtime.retry_policy import side_effect


@side_effect("read hardware on {session.settings.cluster}")
async def read_hardware(session: ProviderSession) -> Hardware:
    """Ask Slurm what the partition consists of."""
    return await registration.read_hardware(session)


@side_effect("propose on {session.settings.cluster}")
async def propose(session: ProviderSession, hardware: Hardware) -> Outcome:
    """Propose hardware, prices and labels to the operator, if something changed."""
    return await registration.propose(session, hardware)


@side_effect("await approval on {session.settings.cluster}")
async def await_approval(session: ProviderSession, within_minutes: int) -> Standing:
    """Wait for the operator, within bounds; how the provider stands then."""
    return await registration.await_approval(session, 60 * within_minutes)
