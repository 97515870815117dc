"""Vectors that Python and the web app must agree on. `python -m tests.web.vectors` writes them again.

Each `tests/web/vector_*` computes the vectors of one page. This module has signatures, hashes and amounts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.lifecycle.definition_hash import hash_definition
from deepgrid.plain_text import mark_controls
from deepgrid.services.signing.request_signing import TYPES as REQUEST_TYPES
from deepgrid.services.signing.request_signing import message_of
from deepgrid.services.signing.session_keys import TYPES as SESSION_TYPES
from deepgrid.services.signing.signatures import Domain, digest
from tests.web.vector_job import bills, log_lines, reasons
from tests.web.vector_newjob import newjob
from tests.web.vector_usage import usage
from tests.web.vector_use import uses

FOLDER = Path(__file__).parent / "vectors"
CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"


def signatures() -> dict[str, Any]:
    """Return the digests of requests and sessions in the domain of a grid."""
    domain = Domain(179188, CONTRACT)
    requests = []
    for path, body, at in (
        ("/v1/jobs/7/log?offset=-65536&wait=25", b"", 1),
        ("/v1/definitions/ab", "ü\0\u202e".encode(), 2**40),
    ):
        message = message_of(domain, "PUT", path, body, at, bytes(range(32)))
        requests.append({"path": path, "body": body.hex(), "at": at, "digest": digest(message).hex()})
    session = {
        "publicKey": b"\x04" + bytes(64),
        "notAfter": 1_800_000_000,
        "rights": "read,store",
        "origin": "http://127.0.0.1:8000",
    }
    made = digest(domain.message(SESSION_TYPES, session)).hex()
    return {
        "contract": CONTRACT, "chain_id": 179188, "request_types": REQUEST_TYPES, "session_types": SESSION_TYPES,
        "requests": requests, "session": {**session, "publicKey": session["publicKey"].hex()}, "session_digest": made,
    }  # fmt: skip


def texts() -> dict[str, Any]:
    """Return the hashes of definitions, credits and cleaned text."""
    amounts = [0, 1, 10**18, 12 * 10**18 + 5 * 10**17, 123456789 * 10**9, 2**256 - 1]
    strange = ["plain", "a\u202eb", "\x1b[31mred\x1b[0m", "zero\u200bwidth", "tab\tline\n", "🙂 é"]
    return {
        "hashes": [
            {"salt": salt.hex(), "content": text, "hash": hash_definition(salt, text.encode())}
            for salt, text in ((bytes(32), "{}"), (bytes(range(32)), '{"steps":[{"name":"ü\U0001f642"}]}'))
        ],
        "credits": [[str(wei), format_credits(wei)] for wei in amounts],
        "marked": [[text, mark_controls(text)] for text in strange],
    }


ALL = {
    "bills": bills, "log_lines": log_lines, "newjob": newjob, "reasons": reasons, "signatures": signatures,
    "texts": texts, "usage": usage, "use": uses,
}  # fmt: skip


def content_of(name: str) -> str:
    """Return the text of a file of vectors, with one vector per line."""
    return f"{_lines(ALL[name]())}\n"


def _lines(value: Any) -> str:
    """Return JSON in which dictionaries of vectors and lists of vectors have one line per member."""
    if isinstance(value, dict) and any(isinstance(one, (dict, list)) for one in value.values()):
        return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(one)}" for key, one in value.items()) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(one) for one in value) + "\n]"
    return json.dumps(value)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in ALL:
        (FOLDER / f"{name}.json").write_text(content_of(name))
