"""The side effects of `register_provider`."""

from __future__ import annotations

from deepgrid.chain.offers import Standing
from deepgrid.provider import registration
from deepgrid.provider.session import ProviderSession
from orchestration.retry_policy import side_effect

read_hardware = side_effect("read hardware on {session.settings.cluster}")(registration.read_hardware)
propose = side_effect("propose on {session.settings.cluster}")(registration.propose)


@side_effect("await approval on {session.settings.cluster}")
async def await_approval(session: ProviderSession, within_minutes: int) -> Standing:
    """Wait up to `within_minutes` for the operator's approval; returns the provider's standing then."""
    return await registration.await_approval(session, 60 * within_minutes)
