"""docs/protocol.md says what the code does: its worked examples verify, its limits are the code's."""

from __future__ import annotations

import re
from pathlib import Path

from deepgrid.services import definitions, messages, notices, protocol
from deepgrid.services.admission import Limits
from deepgrid.services.cleanup import Retention
from deepgrid.services.script_check import MAX_SCRIPT_BYTES
from deepgrid.workflow import location_hash, models
from deepgrid.workflow.canonical import MAX_BYTES as MAX_DEFINITION_BYTES
from tests.services.support import ACCOUNTS, DOMAIN

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()


def test_the_signed_example_verifies() -> None:
    headers = dict(re.findall(r"^    (X-Grid-[A-Za-z-]+): (\S+)$", PAGE, re.M))
    path, body = "/v1/jobs/1/log?offset=0&final=false", b"hello\n"
    verified = protocol.verify(DOMAIN, "POST", path, body, headers, 1700000000)
    assert verified.address == ACCOUNTS["customer"].address
    assert verified.nonce == bytes(range(32))
    assert bytes(ACCOUNTS["customer"].key) == b"\x01" * 32
    assert f"`POST {path}`" in PAGE
    assert DOMAIN.verifying_contract in PAGE


def test_the_named_example_has_its_name() -> None:
    assert f"Salt 0 to 31 and definition `{{}}` give `{location_hash(bytes(range(32)), b'{}')}`" in PAGE


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {protocol.WINDOW_S} s off" in PAGE
    row = f"| {MAX_DEFINITION_BYTES // 1024} KiB, {models.MOST_STEPS:,} steps, {models.LONGEST_BYTES:,} bytes"
    assert row in PAGE
    assert f"| less than {MAX_SCRIPT_BYTES // 1024**2} MiB |" in PAGE
    bodies = (messages.MAX_UPLOAD_BODY_BYTES // 1024, messages.MAX_LOG_CHUNK_BYTES // 1024**2)
    assert f"| {bodies[0]} KiB; {bodies[1]} MiB; {messages.MAX_SMALL_BODY_BYTES // 1024} KiB |" in PAGE
    assert f"| {Limits().body_within_s:.0f} s |" in PAGE
    assert f"| {definitions.MOST_DEFINITIONS:,} |" in PAGE
    assert f"| {messages.MAX_NOTICE_CHARS} characters; the last {notices.MOST_NOTICES} |" in PAGE
    assert f"({messages.MAX_WAIT_S:.0f} at most)" in PAGE
    kept = Retention()
    assert f"deleted {kept.cold_s // 60} minutes after" in PAGE
    assert f"and {kept.unused_s // 3600} h after" in PAGE
    assert f"kept for {kept.log_s // 86400} days" in PAGE
