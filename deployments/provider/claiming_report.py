"""Shows in Prefect whether a cluster claims jobs, and if not, why: the variable `deepgrid_claiming_CLUSTER`.

A paused deployment starts no run that could say so, and other runs of `claim_jobs` are rare on a quiet day. The UI has
all variables on one page, with the time of the last change.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from prefect.variables import Variable

from deepgrid.chain.chain_findings import PROVIDER_GAS, judge_gas
from deepgrid.chain.offers import read_versions
from deepgrid.errors import GridError
from deepgrid.findings import Level
from deepgrid.provider.session import ProviderSession
from orchestration.claiming_pause import variable_name, why_closed
from orchestration.outages import answer_of, warn

CHECK_EVERY_S = 60.0

logger = logging.getLogger(__name__)


async def report_claiming(session: ProviderSession, check_every_s: float = CHECK_EVERY_S) -> None:
    """Set the variable when its sentence changes, forever. An outage of Prefect delays it."""
    cluster = session.settings.cluster
    name, shown = variable_name("claiming", cluster), ""
    while True:
        try:
            words = await claiming_words(session)
            if words != shown:
                await answer_of(partial(_set, name, words))
                shown = words
        except Exception as error:  # Prefect's client raises many types
            warn(logger, f"cannot show whether {cluster} claims jobs, trying again", error)
        await asyncio.sleep(check_every_s)


async def claiming_words(session: ProviderSession) -> str:
    """Return whether the cluster claims jobs, and if not, why. Prefect's list shows about 35 characters of it."""
    try:
        usable, nodes = await session.cluster.health()
        why = await _why_not(session)
    except GridError as error:
        why = error.message.rstrip(".")
    if why:
        return f"No: {why}."
    return f"Yes: {usable} of {nodes} nodes take jobs." if usable < nodes else "Yes: all nodes take jobs."


async def _set(name: str, words: str) -> None:
    """Set the variable, unless a former process has set the same: then it keeps its time."""
    if await Variable.aget(name) != words:
        await Variable.aset(name, words, overwrite=True)


async def _why_not(session: ProviderSession) -> str:
    """Return the first reason why no job is claimed; empty without one. Raises GridError when the chain is down."""
    standing = (await read_versions(session.chain, session.address)).standing
    if not standing.in_force:
        return f"the provider {standing.value}"
    money, price = await asyncio.gather(session.chain.gas_money(session.address), session.chain.gas_price())
    gas = judge_gas(PROVIDER_GAS, session.address, money, price)
    if gas.level is Level.BAD:
        return gas.words.rstrip(".")
    return await why_closed(session)
