"""The sessions that tasks use: one per role and process, opened by the process that serves.

A run in another process (a stock worker, a plain call) opens its own session from the role's block.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated

from pydantic import Field

from blocks import Operator, Provider
from blocks.block_loading import load_block
from deepgrid.chain.client import Chain
from deepgrid.errors import GridError, InputError
from deepgrid.operator.session import OperatorSession, operator_session
from deepgrid.provider.session import ProviderSession, provider_session
from orchestration.run_logs import drop_repeated_lines

# Parameters of flows. Prefect's server refuses a name that no block can have.
BlockName = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,49}$")]

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
    """Yield the session of a cluster: this process's, or a new one for this run.

    Raises InputError in a process that serves other blocks only.
    """
    with _errors_name(f"dps provider doctor {cluster}"):
        if cluster in _providers:
            yield _providers[cluster]
            return
        _refuse_if_serving(cluster)
        drop_repeated_lines()
        async with provider_session((await load_block(Provider, cluster)).settings()) as session:
            yield session


@asynccontextmanager
async def operator(name: str) -> AsyncIterator[OperatorSession]:
    """Yield the operator's session: this process's, or a new one for this run.

    Raises InputError in a process that serves other blocks only.
    """
    with _errors_name(f"dps operator doctor {name}"):
        if name in _operators:
            yield _operators[name]
            return
        _refuse_if_serving(name)
        drop_repeated_lines()
        async with operator_session((await load_block(Operator, name)).settings()) as session:
            yield session


@asynccontextmanager
async def chain_of(operator_name: str | None, cluster: str | None) -> AsyncIterator[Chain]:
    """Yield the chain as the operator or the provider of the cluster sees it. Raises InputError unless one is given."""
    if operator_name is not None and cluster is None:
        async with operator(operator_name) as office:
            yield office.chain
    elif cluster is not None and operator_name is None:
        async with provider(cluster) as session:
            yield session.chain
    else:
        raise InputError("The run needs one name.", next_step="Give one of `cluster` and `operator`.")


def _refuse_if_serving(name: str) -> None:
    """Raise InputError in a process that serves. Its runs would work on a block whose own process does the same."""
    if served := [*_providers, *_operators]:
        raise InputError(
            f"This process serves {', '.join(served)}, not {name}.",
            next_step=f"Start the run from a deployment of {name}.",
        )


@contextmanager
def _errors_name(doctor: str) -> Iterator[None]:
    """Make errors without a next step name the command that finds their cause."""
    try:
        yield
    except GridError as error:
        error.next_step = error.next_step or f"Run `{doctor}`."
        raise
