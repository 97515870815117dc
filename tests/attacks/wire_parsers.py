"""The parsers of strangers' input: valid texts of each, its errors, and whether it runs in the event loop."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eth_account.messages import encode_defunct
from eth_utils.address import to_checksum_address
from graphql import GraphQLError, get_introspection_query
from grpclib import GRPCError
from pydantic_core import from_json

from deepgrid.chain.batches import Request, request_args
from deepgrid.chain.node.contract import interface
from deepgrid.client.display.text import COLOUR, LogLines
from deepgrid.compat.graphql.documents import read_body, read_document
from deepgrid.compat.graphql.operations import execute
from deepgrid.compat.logger_api.grpc_web import frames, message_of
from deepgrid.compat.logger_api.logger_pb2 import ReadRequest, WatchListRequest
from deepgrid.compat.logger_api.methods import _job_id, _parse, reader_of, watcher_of
from deepgrid.errors import InputError
from deepgrid.gateway.check import _file_of
from deepgrid.gateway.relay.read_rules import Rules
from deepgrid.gateway.relay.rpc_answers import Fault
from deepgrid.gateway.settings import WebLimits
from deepgrid.modules.gotemplate import TemplateLimits, fill_in_go
from deepgrid.modules.template import TemplateFault
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import BadRequestSignature, sign, verify
from deepgrid.signer.calls import parse as parse_call
from deepgrid.signer.limit import Refused
from deepgrid.signer.typed_data import KINDS, rebuild
from deepgrid.signer.typed_data import Grid as SignerGrid
from deepgrid.signer.typed_data import parse as parse_typed
from deepgrid.workflow import parse
from tests.chain.grid import DEFINITION
from tests.compat.graphql.support import SUBMIT, WHOLE_JOB
from tests.gateway.relay_support import BOOK
from tests.modules.go_support import ROOT
from tests.services.support import ACCOUNTS, DOMAIN, session_key

NOW = 1_700_000_000
PATH = "/v1/jobs/1/log"
CONTRACT = "0x" + "01" * 20
RULES = Rules(5, frozenset({CONTRACT}), WebLimits(), transactions=True)
PIECES = (
    b"{", b"}", b"[", b"]", b"(", b")", b'"', b"\\", b":", b",", b"\n", b"  ", b"\0", b"\xff", b"\xed\xa0\x80",
    b"\\ud800", b"-1", b"99999999999999999999999", b"1e999", b"0x", b"null", b"true", b"NaN", b"__schema", b"...F",
    b"@skip(if: $a)", b"fragment F on Query {...F}", b"&a ", b"*a", b"<<: *a", b"- ", b"? ", b"!!python/object",
    b"{{", b"}}", b"{{range .Step.Use.Steps}}", b"{{end}}", b"{{if", b"| toYaml", b"\x01\x00\x00\x00\x05", b"eth_call",
    b"latest", b"---", b"%YAML 9", b"\x1b[", b"\x1b]", b"38;5;", b"8m", b"\r",
)  # fmt: skip
ALIASES = """\
x-e: &e {env: &v [{key: A, value: v}], command: echo}
x-l: &l [*e, *e, {<<: *e, command: x}, {<<: [*e], env: *v}]
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
steps:
- {name: one, run: *e}
- {name: two, run: {<<: *e, shell: /bin/sh}}
"""
OUTPUT = "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3;48:2::4:5:6mdark\x1b[39m\x1b[K\x1b]0;t\x07\r\n\x9b3m\u202e\n".encode()
TEMPLATE = """\
name: m
steps:
{{- range $n, $s := .Step.Use.Steps }}
  - name: {{ $s.Name | default "none" | quote }}
    {{ if and $s.Run (eq $s.Name "one") }}run:
      {{- $s.Run | toYaml | nindent 6 }}
    {{ else }}{{ $.Job.Resources.Tasks }}{{ end }}
{{- end }}
"""


def read_call(body: bytes) -> None:
    """Read a batch as the relay does."""
    try:
        asked = from_json(body)
    except ValueError:
        return
    for call in asked if isinstance(asked, list) else [asked]:
        if isinstance(call, dict) and isinstance(call.get("method"), str) and isinstance(call.get("params"), list):
            try:
                RULES.read(call["method"], call["params"], 100)
            except RecursionError:  # the relay answers with a sentence
                continue


def read_frame(body: bytes) -> None:
    """Read a call over gRPC-web as the log service does, until it knows the job."""
    request = _parse(ReadRequest, message_of(body, text=not body.startswith((b"\0", b"\1"))))
    _job_id(request.log_name)
    reader_of(request, NOW)


def read_list_frame(body: bytes) -> None:
    """Read a request for a list of logs as the log service does."""
    watcher_of(_parse(WatchListRequest, message_of(body, text=False)), NOW)


def read_page_call(body: bytes) -> None:
    """Read a request to send or to sign as the signer of `dps web` does."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return
    if isinstance(asked, dict) and asked.get("types"):
        rebuild(parse_typed(asked), SIGNED_FOR)
    else:
        parse_call(asked, BOOK, OWNER)


def show_output(output: bytes) -> None:
    """Show the output of a job as clients do."""
    lines = LogLines()
    for line in [*lines.feed(output), *lines.feed(b"", final=True)]:
        assert not set("\x1b\r\n\x07") & set(COLOUR.sub("", line))


def read_headers(lines: bytes) -> None:
    """Read a signed request as the services do."""
    pairs = (line.partition(": ") for line in lines.decode("latin-1").split("\n"))
    verify(DOMAIN, "GET", PATH, b"", {name: value for name, _, value in pairs}, NOW)


def fill_in(text: bytes) -> None:
    fill_in_go(text.decode(errors="replace"), ROOT, TemplateLimits(10_000, 64 * 1024))


@dataclass(frozen=True)
class Parser:
    """One parser. Parsers outside the event loop run in threads or processes."""

    parse: Callable[[bytes], Any]
    valid: tuple[bytes, ...]
    refusals: tuple[type[Exception], ...]
    in_loop: bool = True


def _coded(**body: Any) -> bytes:
    return json.dumps(body).encode()


def _headers(found: dict[str, str]) -> bytes:
    return "\n".join(f"{name}: {value}" for name, value in found.items()).encode()


def _frames() -> tuple[bytes, bytes]:
    account, name = ACCOUNTS["customer"], f"0x{1:064x}"
    signed = account.sign_message(encode_defunct(text=f"read:{account.address.lower()}/{name}/{NOW}"))
    request = ReadRequest(address=account.address, log_name=name, timestamp=NOW, signed_hash=bytes(signed.signature))
    whole = frames([request.SerializeToString()], text=False)
    return whole, base64.b64encode(whole)


def _list_frame() -> bytes:
    account = ACCOUNTS["customer"]
    signed = account.sign_message(encode_defunct(text=f"watchList:{account.address.lower()}/{NOW}"))
    request = WatchListRequest(address=account.address, timestamp=NOW, signed_hash=bytes(signed.signature))
    return frames([request.SerializeToString()], text=False)


def _page_calls() -> Iterator[bytes]:
    session = {"publicKey": "0x04" + "12" * 64, "notAfter": NOW + 60, "rights": "read", "origin": SIGNED_FOR.origin}
    permit = {"owner": OWNER, "spender": BOOK.meta_scheduler, "value": "1", "nonce": 0, "deadline": NOW + 60}
    for kind, message in (("Session", session), ("Permit", permit)):
        types, domain = {kind: KINDS[kind]}, SIGNED_FOR.domains[kind]
        yield _coded(primaryType=kind, types=types, domain=domain, message=message)
    job = request_args(Request(DEFINITION, 10**18, "job", False))
    yield _coded(to=BOOK.meta_scheduler, data=interface("MetaScheduler").encode("requestNewJob", *job))
    yield _coded(to=BOOK.credit, data=interface("Credit").encode("approve", BOOK.meta_scheduler, 1), value="0x0")


def _transaction() -> str:
    fields = {"chainId": 5, "nonce": 0, "gas": 21_000, "maxFeePerGas": 1, "maxPriorityFeePerGas": 1, "value": 0}
    signed = ACCOUNTS["customer"].sign_transaction({"to": to_checksum_address(CONTRACT), "type": 2, **fields})
    return "0x" + bytes(signed.raw_transaction).hex()


OWNER = ACCOUNTS["customer"].address
SIGNED_FOR = SignerGrid(
    OWNER, BOOK.meta_scheduler, dict.fromkeys(("Session", "Permit"), DOMAIN.as_dict()), "http://127.0.0.1:8090", NOW
)
SIGNED = sign(ACCOUNTS["customer"], DOMAIN, "GET", PATH, b"", NOW)
BY_SESSION = session_key(now=NOW).headers(DOMAIN, "GET", PATH, b"", NOW)
CALLS = (
    {"method": "eth_call", "params": [{"to": CONTRACT, "data": "0x00"}, "latest"]},
    {"method": "eth_getLogs", "params": [{"address": [CONTRACT], "fromBlock": "0x1", "toBlock": "0x5", "topics": []}]},
    {"method": "eth_feeHistory", "params": ["0x5", "latest", [10, 50]]},
    {
        "method": "eth_sendRawTransaction",
        "params": [_transaction()],
    },
)

WIRE_PARSERS = {
    "GraphQL body": Parser(execute, (_coded(query=SUBMIT, variables={"job": WHOLE_JOB}),), (), in_loop=False),
    "GraphQL document": Parser(
        lambda text: read_document(None, {"query": text.decode(errors="replace")}),
        (get_introspection_query().encode(), SUBMIT.encode()), (GraphQLError,), in_loop=False,
    ),
    "GraphQL variables": Parser(
        read_body, (_coded(query=SUBMIT, variables={"a": WHOLE_JOB}),), (GraphQLError,), in_loop=False
    ),
    "YAML aliases": Parser(
        lambda text: parse(text.decode(errors="replace"), "job.yaml"), (ALIASES.encode(),), (InputError,), in_loop=False
    ),
    "Go template": Parser(fill_in, (TEMPLATE.encode(),), (TemplateFault,), in_loop=False),
    "request of a check": Parser(_file_of, (_coded(file=ALIASES),), (Refusal,)),
    "relay": Parser(read_call, (json.dumps(CALLS).encode(), *(json.dumps(call).encode() for call in CALLS)), (Fault,)),
    "gRPC-web frame": Parser(read_frame, _frames(), (GRPCError,)),
    "gRPC-web list": Parser(read_list_frame, (_list_frame(),), (GRPCError,)),
    "call of a page": Parser(read_page_call, tuple(_page_calls()), (Refused,)),
    "output of a job": Parser(show_output, (OUTPUT,), ()),
    "signed request": Parser(read_headers, (_headers(SIGNED), _headers(BY_SESSION)), (BadRequestSignature,)),
}  # fmt: skip
