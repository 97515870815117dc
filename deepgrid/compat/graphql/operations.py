"""Executes operations as far as they need no store and no chain: `python -m deepgrid.compat.graphql.operations`.

A process for this, because no limit on what strangers send is as sure as the end of a process. What an operation needs
of the service is returned with the answer, and the service puts it in.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from ariadne import MutationType, QueryType, graphql_sync, load_schema_from_path, make_executable_schema
from graphql import GraphQLError, GraphQLResolveInfo, get_introspection_query

from deepgrid.compat.graphql.documents import TooLarge, limited_answer, read_body, read_document
from deepgrid.compat.graphql.job_input import FaultyInput, definition_from, module_from
from deepgrid.compat.graphql.scalars import text, whole_number
from deepgrid.plain_text import plain
from deepgrid.services.worker_loop import answer_requests
from deepgrid.workflow import canonical

VALID = "valid"
GPUS_OF_OLDER_FILES = "type 'JobResources' not to include unknown field 'gpusPerTask'"
LONGEST_MESSAGE = 500  # graphql-core's messages quote values
MOST_ANSWER_BYTES = 256 * 1024
NICENESS = 5  # signed requests come first

Needs = list[dict[str, Any]]  # the field of the answer, and either the job to store or the hash of one to show

query, mutation = QueryType(), MutationType()
nowhere = logging.Logger("graphql")  # ariadne logs each error with its values and traceback
nowhere.disabled = True


@mutation.field("submit")
def submit(_root: None, info: GraphQLResolveInfo[Needs], job: Any) -> str:
    """Have the service store a job. Raises FaultyInput."""
    info.context.append({"field": info.path.key, "store": canonical(definition_from(job)).decode()})
    return ""


@mutation.field("validate")
def validate(_root: None, _info: GraphQLResolveInfo[Needs], module: Any) -> str:
    """`valid`, or the faults of a module, one per line."""
    try:
        module_from(module)
    except FaultyInput as error:
        return str(error)
    return VALID


@query.field("job")
def batch_script(_root: None, info: GraphQLResolveInfo[Needs], batchLocationHash: str) -> str:
    """Have the service show the batch script of a stored definition."""
    info.context.append({"field": info.path.key, "show": batchLocationHash})
    return ""


SCHEMA = make_executable_schema(load_schema_from_path(str(Path(__file__).with_name("schema.graphql"))), query, mutation)
SCHEMA.type_map["Int"].coerce_input_value = whole_number  # type: ignore[attr-defined] # each scalar has these functions
SCHEMA.type_map["String"].coerce_input_value = text  # type: ignore[attr-defined]


def execute(body: bytes) -> dict[str, Any]:
    """Return the status and the content of the answer to a request, and the parts that the service must add."""
    needs: Needs = []
    try:
        _done, result = graphql_sync(
            SCHEMA,
            read_body(body),
            context_value=needs,
            query_parser=read_document,
            middleware=[limited_answer()],
            logger=nowhere,
            error_formatter=_entry,
        )
    except GraphQLError as error:
        return _refusal(error.message)
    except TooLarge:
        return _refusal("the answer would hold too many fields")
    errors = [one for entry in result.get("errors", ()) for one in entry.pop("faults", [entry])]
    if not errors:
        return {"status": 200, "content": result, "needs": needs}
    began = any("path" in error for error in errors)  # errors of GraphQL itself have no path
    return {"status": 200 if began else 422, "content": {**result, "errors": errors}, "needs": []}


def examine(message: bytes) -> bytes:
    """Return the answer to one message of the service, as JSON."""
    answer = execute(message)
    content = json.dumps(answer).encode()
    if len(content) > MOST_ANSWER_BYTES and not answer["needs"]:
        return json.dumps(_refusal(f"the answer would be larger than {MOST_ANSWER_BYTES // 1024} KiB")).encode()
    return content


def _refusal(sentence: str) -> dict[str, Any]:
    return {"status": 422, "content": {"errors": [{"message": sentence}]}, "needs": []}


def _entry(error: GraphQLError, _debug: bool = False) -> dict[str, Any]:
    """Return the entry of an error, or a list of entries under `faults`."""
    cause, path = error.original_error, error.path or []
    if isinstance(cause, FaultyInput):
        return {"faults": cause.entries(path)}
    if cause is None or isinstance(cause, GraphQLError):
        message, where = plain(error.message), {"path": path} if path else {}
        if GPUS_OF_OLDER_FILES in message:
            message = "resources.gpusPerTask: did you mean 'gpus'? It is the number of GPUs of the whole job."
        return {"message": message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "...", **where}
    words = f"the service failed ({type(cause).__name__})"
    return {"message": words, "path": path, "extensions": {"type": "internal"}}


if __name__ == "__main__":
    os.nice(NICENESS)
    examine(json.dumps({"query": get_introspection_query()}).encode())  # warms up
    answer_requests(examine)
