"""Takes a provider's offer from its block into the process that serves the cluster, so that it needs no restart."""

from __future__ import annotations

from dataclasses import fields, replace

from blocks.settings_cache import fresh_settings
from deepgrid.provider.session import LOG_RATE_LABEL, SESSIONS_LABEL, ProviderSession


async def read_offer(session: ProviderSession) -> list[str]:
    """Read prices and labels from the provider block into the session. Returns other settings that differ from it.

    A start without Prefect then offers the same. The label of the log rate stays, because this process keeps its rate.
    """
    old, new = session.settings, await fresh_settings(session.settings.cluster)
    kept = (LOG_RATE_LABEL, SESSIONS_LABEL)
    labels = [one for one in new.labels if one.key not in kept]
    labels += [one for one in old.labels if one.key in kept]
    in_order = tuple(sorted(labels, key=lambda one: one.key))
    session.settings = replace(old, prices=new.prices, labels=in_order)
    others = [one.name for one in fields(new) if one.name not in ("prices", "labels")]
    return [name for name in others if getattr(new, name) != getattr(old, name)]
