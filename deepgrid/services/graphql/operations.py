"""What the operations do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ariadne import MutationType, QueryType, load_schema_from_path, make_executable_schema
from graphql import GraphQLResolveInfo

from deepgrid.errors import InputError
from deepgrid.sbatch import StoragePaths, render
from deepgrid.services.anonymous import store_anonymous
from deepgrid.services.context import Context
from deepgrid.services.graphql.fault_entries import FaultyInput, faults_of_lines
from deepgrid.services.graphql.job_input import definition_from, module_from
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import Definition as OwnedDefinition
from deepgrid.services.storage.database import UnownedDefinition
from deepgrid.workflow import from_canonical
from deepgrid.workflow.canonical import SALT_BYTES

VALID = "valid"

T = TypeVar("T")
query, mutation = QueryType(), MutationType()
checking = ThreadPoolExecutor(1, "graphql")  # of its own: inputs of strangers must not delay signed uploads


@dataclass(frozen=True)
class Asked:
    """The service, and the source address of a request."""

    context: Context
    source: str


@mutation.field("submit")
async def submit(_root: None, info: GraphQLResolveInfo[Asked], job: Any) -> str:
    """Store a job, and return its hash. Raises FaultyInput, Refusal and ServiceError."""
    asked = info.context
    definition = await _apart(definition_from, job)
    try:
        return await store_anonymous(asked.context, asked.source, definition)
    except InputError as error:
        raise FaultyInput(faults_of_lines(error.message)) from None


@mutation.field("validate")
async def validate(_root: None, _info: GraphQLResolveInfo[Asked], module: Any) -> str:
    """`valid`, or the faults of a module, one per line."""
    try:
        await _apart(module_from, module)
    except FaultyInput as error:
        return str(error)
    return VALID


@query.field("job")
async def batch_script(_root: None, info: GraphQLResolveInfo[Asked], batchLocationHash: str) -> str:
    """The batch script of a stored definition, if the service runs for tests. Raises Refusal."""
    context = info.context.context
    if not context.debug_scripts:
        raise Refusal(403, "this service does not show batch scripts")
    async with context.database.read() as session:
        owned = await session.get(OwnedDefinition, batchLocationHash)
        unowned = await session.get(UnownedDefinition, batchLocationHash)
    sealed = (owned and owned.sealed) or (unowned and unowned.sealed)
    if not sealed:
        raise Refusal(404, "there is no definition under this hash")
    return render(from_canonical(context.vault.unseal(sealed)[SALT_BYTES:]), StoragePaths())


async def _apart(check: Callable[[Any], T], given: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(checking, check, given)


SCHEMA = make_executable_schema(load_schema_from_path(str(Path(__file__).with_name("schema.graphql"))), query, mutation)
