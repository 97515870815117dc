"""The sessions that tasks use: one per role and process, opened by the process that serves.

A run in another process (a stock worker, a plain call) opens its own session from the role's block.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from blocks import Operator, Provider
from deepgrid.chain.client import Chain
from deepgrid.operator.session import OperatorSession, operator_session
from deepgrid.provider.session import ProviderSession, provider_session

_providers: dict[str, ProviderSession] = {}
_operators: dict[str, OperatorSession] = {}


@asynccontextmanager
async def serving_provider(session: ProviderSession) -> AsyncIterator[None]:
    """Make `session` the one that this process's runs use for its cluster."""
    _providers[session.settings.cluster] = session
    try:
        yield
    finally:
        del _providers[session.settings.cluster]


@asynccontextmanager
async def serving_operator(name: str, session: OperatorSession) -> AsyncIterator[None]:
    """Make `session` the one that this process's runs use for the operator block `name`."""
    _operators[name] = session
    try:
        yield
    finally:
        del _operators[name]


@asynccontextmanager
async def provider(cluster: str) -> AsyncIterator[ProviderSession]:
    """Yield the session of a cluster: this process's, or a new one for this run."""
    if cluster in _providers:
        yield _providers[cluster]
        return
    block = cast(Provider, await Provider.aload(cluster))
    async with provider_session(block.settings()) as session:
        yield session


@asynccontextmanager
async def operator(name: str) -> AsyncIterator[OperatorSession]:
    """Yield the operator's session: this process's, or a new one for this run."""
    if name in _operators:
        yield _operators[name]
        return
    block = cast(Operator, await Operator.aload(name))
    async with operator_session(block.settings()) as session:
        yield session


@asynccontextmanager
async def chain_of(operator_name: str, cluster: str) -> AsyncIterator[Chain]:
    """Yield the chain as the operator sees it or, without an operator, the provider of the cluster."""
    if operator_name:
        async with operator(operator_name) as office:
            yield office.chain
    else:
        async with provider(cluster) as session:
            yield session.chain
