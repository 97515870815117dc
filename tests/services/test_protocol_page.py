"""docs/reference/protocol.md matches the code: its examples verify, and its limits equal the code's."""

from __future__ import annotations

import re
from pathlib import Path

from Crypto.PublicKey import ECC

from deepgrid.chain.job_trail import MOST_TOP_UPS
from deepgrid.compat import unsigned_definitions
from deepgrid.compat.compat_context import CompatLimits
from deepgrid.compat.graphql import documents, operations
from deepgrid.lifecycle.definition_hash import MAX_BYTES as MAX_DEFINITION_BYTES
from deepgrid.services import kept_messages, messages
from deepgrid.services.admission import Limits, Rate, checks
from deepgrid.services.cleanup import Retention
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.handlers import definitions
from deepgrid.services.receipts import MAX_RECEIPT_BYTES, signed
from deepgrid.services.script_check import MAX_SCRIPT_BYTES, CheckLimits
from deepgrid.services.signing import request_signing
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S, SESSION_HEADER, TYPES, Session
from deepgrid.services.signing.signatures import digest
from deepgrid.services.signing.signers import SessionKey
from deepgrid.services.storage import kept_rows
from deepgrid.workflow import hash_definition
from deepgrid.workflow.models import rules
from deepgrid.workflow.models.fields import LONGEST_BYTES
from tests.services.support import ACCOUNTS, DOMAIN

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "protocol.md").read_text()
WORDS = " ".join(PAGE.split())


def test_the_signed_example_verifies() -> None:
    headers = example(0)
    path, body = "/v1/jobs/1/log?offset=0&final=false", b"hello\n"
    verified = request_signing.verify(DOMAIN, "POST", path, body, headers, 1700000000)
    assert verified.address == ACCOUNTS["customer"].address
    assert verified.nonce == bytes(range(32))
    assert bytes(ACCOUNTS["customer"].key) == b"\x01" * 32
    assert f"`POST {path}`" in PAGE
    assert DOMAIN.verifying_contract in PAGE


def test_the_example_of_a_session_key_is_what_the_code_makes() -> None:
    wallet, key = ACCOUNTS["customer"], ECC.construct(curve="P-256", d=int.from_bytes(b"\x02" * 32, "big"))
    public_key = bytes(key.public_key().export_key(format="raw"))
    session = Session.signed_by(wallet, DOMAIN, public_key, 1700040000, "read,store", "https://grid.example")
    path, nonce = "/v1/jobs/1/log?offset=-65536", bytes(range(32))
    message = request_signing.message_of(DOMAIN, "GET", path, b"", 1700000000, nonce)
    signature = SessionKey(wallet.address, session, key).sign(digest(message))
    headers = request_signing.headers_of(wallet.address, 1700000000, nonce, signature)
    assert example(1) == {**headers, SESSION_HEADER: session.header()}
    verified = request_signing.verify(DOMAIN, "GET", path, b"", example(1), 1700000000)
    assert (verified.address, verified.session) == (wallet.address, session)
    assert f"`GET {path}`" in PAGE
    assert f"at most {MAX_LIFETIME_S // 3600} hours, and {CLOCK_SLACK_S} s for a wrong clock" in PAGE
    fields = ", ".join(f"{field['type']} {field['name']}" for field in TYPES["Session"])
    assert f"    Session({fields})" in PAGE


def test_the_signed_form_of_a_receipt_is_the_codes() -> None:
    fields = ", ".join(f"{field['type']} {field['name']}" for field in signed.TYPES["Receipt"])
    assert f"Receipt({fields})" in " ".join(PAGE.split())
    assert (
        f"| a receipt; receipts kept per job; its transactions | {MAX_RECEIPT_BYTES // 1024} KiB; the first one" in PAGE
    )
    assert f"the newest {MOST_TOP_UPS} top-ups" in PAGE


def test_the_named_example_has_its_name() -> None:
    assert f"Salt 0 to 31 and definition `{{}}` give `{hash_definition(bytes(range(32)), b'{}')}`" in WORDS


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {request_signing.WINDOW_S} s before or after the service's clock" in WORDS
    row = f"| {MAX_DEFINITION_BYTES // 1024} KiB, {rules.MOST_STEPS:,} steps, {LONGEST_BYTES:,} bytes"
    assert row in PAGE
    assert f"| less than {MAX_SCRIPT_BYTES // 1024**2} MiB |" in PAGE
    bodies = (messages.MAX_UPLOAD_BODY_BYTES // 1024, messages.MAX_LOG_CHUNK_BYTES // 1024**2)
    others = (messages.MAX_NOTICES_BODY_BYTES // 1024, messages.MAX_SMALL_BODY_BYTES // 1024)
    assert f"| {bodies[0]} KiB; {bodies[1]} MiB; {others[0]} KiB; {others[1]} KiB |" in PAGE
    assert f"| notices of one request on many jobs | {messages.MAX_NOTICES_AT_ONCE} |" in PAGE
    assert f"| {Limits().definitions_per_customer:,} |" in PAGE
    assert f"| {messages.MAX_NOTICE_CHARS} characters; the last {Limits().notices_per_job} |" in PAGE
    assert f"| {definitions.MOST_RELEASES_OF_JOB}; {definitions.MOST_RELEASES:,} |" in PAGE
    assert f"| revoked session keys kept per wallet | {Limits().revocations_per_wallet} |" in PAGE
    assert f"({messages.MAX_WAIT_S:.0f} at most)" in PAGE
    kept = Retention()
    assert f"deleted {kept.cold_s // 60} minutes after" in PAGE
    assert f"and {kept.unused_s // 3600} h after" in PAGE
    assert f"kept for {kept.log_s // 86400} days" in PAGE
    of_tags = f"{kept_messages.MOST_TAGS}; 40 and 80 characters; {kept_messages.MOST_NOTE_CHARS} characters |"
    assert f"| tags of a job; their names and values; its note | {of_tags}" in PAGE
    of_parameters = f"{kept_messages.MOST_PARAMETER_BYTES // 1024} KiB; {kept_messages.MOST_MARKS_AT_ONCE}"
    assert f"| {of_parameters}, {kept_messages.MAX_MARKS_BODY_BYTES // 1024**2} MiB |" in PAGE
    assert f"| {kept_rows.MOST_BYTES_PER_CUSTOMER // 1024**2} MiB; beyond that" in PAGE


def test_the_bounds_on_strangers_are_those_of_the_code() -> None:
    limits = Limits()
    assert f"waiting readers | {limits.running_per_address} | {limits.running} |" in PAGE
    assert f"gRPC, gRPC-web | {limits.running_per_address} | {CompatLimits().running} |" in PAGE
    assert f"| requests of a signer | {told(limits.requests_per_signer)} | |" in PAGE
    assert f"| {told(limits.strangers_per_address)} | |" in PAGE
    assert f"| {told(limits.lookups_per_address)} | {told(limits.lookups)} |" in PAGE
    assert f"| {limits.followers_per_job}; {limits.followers:,} |" in PAGE
    assert f"| {limits.checks_waiting_per_uploader}; {limits.check_wait_s:.0f} s |" in PAGE
    assert f"| {CheckLimits().processor_s} s of processor time, {CheckLimits().within_s:.0f} s in all |" in PAGE
    assert f"| {checks.MAX_GENERATED_BYTES // 1024} KiB: about" in PAGE


def test_the_bounds_of_the_proxy_are_those_of_its_file() -> None:
    limits = EdgeLimits()
    assert f"| requests to the services at once, waiting readers included | {limits.running} |" in PAGE
    assert f"| requests with a body at once; to the relay | {limits.sending}; {limits.public_sending} |" in PAGE
    assert f"| {limits.requests_per_s} per second, {limits.requests_at_once:,} at once |" in PAGE
    public = f"{limits.public_reads_per_s} per second, {limits.public_reads_at_once:,} at once"
    assert f"| {public}; {limits.public_running:,} running |" in PAGE
    assert f"| {limits.compat_per_s} per second, {limits.compat_at_once} at once |" in PAGE
    assert f"relay at once | {limits.public_running:,} |" in PAGE
    assert f"A request's head has {limits.head_within_s} s and 32 KiB. Each part of a body has" in WORDS
    assert f"{limits.body_within_s} s, a TLS" in WORDS
    assert f"idle connection {limits.keep_alive_s} s. A client has {limits.answer_within_s} s" in WORDS
    assert f"accepts {limits.connections:,} per worker" in WORDS


def test_the_bounds_of_graphql_are_those_of_the_code() -> None:
    most = f"{documents.MOST_TOKENS:,} tokens, {documents.MOST_CHARACTERS:,} characters, {documents.MOST_FIELDS} fields"
    assert f"{most} and {documents.MOST_NESTED} levels" in PAGE
    assert f"{documents.MOST_VALUES:,} values, {documents.MOST_OBJECTS:,} objects and" in WORDS
    assert f"{documents.MOST_ANSWERED:,} fields and {operations.MOST_ANSWER_BYTES // 1024} KiB" in WORDS
    limits = CompatLimits()
    waiting = (
        f"{limits.graphql_waiting_per_address} requests of an address may wait, for at most {limits.check_wait_s:.0f} s"
    )
    assert waiting in WORDS
    assert f"A check that takes {limits.graphql_within_s:.0f} s is stopped with status 422" in WORDS
    assert limits.graphql_slots == 2


def test_the_bounds_on_definitions_without_a_signature_are_those_of_the_code() -> None:
    limits, mib = CompatLimits(), 1024 * 1024
    each = f"{limits.definitions_per_address:,} and {limits.definition_bytes_per_address // mib} MiB"
    assert f"| {each}; {limits.definitions:,} and {limits.definition_bytes // mib} MiB |" in PAGE
    assert f"| {told(limits.submissions_per_address)} |" in PAGE
    assert f"| {limits.checks_waiting_per_address}; {limits.check_wait_s:.0f} s |" in PAGE
    assert f"without an owner is deleted after {Retention().unowned_s // 3600} h" in PAGE
    assert limits.check_slots == 1
    used = unsigned_definitions.LIMITS
    assert f"use {used.uses} modules, {used.depth} levels deep. It has {used.within_s:.0f} s in all" in WORDS
    assert f"{used.fetch_within_s:.0f} s for each call of git, and {used.repository_bytes // mib} MiB" in WORDS
    assert limits.module_fetches == 2


def example(number: int) -> dict[str, str]:
    """Return the headers of one example of the page."""
    blocks = re.findall(r"(?:^    X-Grid-[A-Za-z-]+: \S+\n)+", PAGE, re.M)
    return dict(re.findall(r"^    (\S+): (\S+)$", blocks[number], re.M))


def told(rate: Rate) -> str:
    return f"{rate.per_s:.0f} per second, {rate.burst:,.0f} at once"
