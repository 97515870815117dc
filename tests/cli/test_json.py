"""`--json` prints one JSON value on standard output, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.cli.verbs import kept_output
from deepgrid.client.job_output import ShareLink
from tests.cli.live import CREDIT, Dps
from tests.cli.support import Invoke

UNTIL = datetime(2026, 12, 1, tzinfo=UTC)


class SharedJob:
    """A job with two links to its files."""

    revoked = False

    async def share(self, for_: str) -> ShareLink:
        return ShareLink(f"https://jobs.example/files/{for_}", UNTIL)

    async def shares(self) -> list[ShareLink]:
        return [ShareLink("", UNTIL), ShareLink("", UNTIL, revoked=True)]

    async def unshare(self) -> None:
        self.revoked = True


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> SharedJob:
    job = SharedJob()

    async def found(_: int) -> SharedJob:
        return job

    @asynccontextmanager
    async def as_customer(*_: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(job=found)

    monkeypatch.setattr(kept_output, "as_customer", as_customer)
    return job


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("--for", "12h"), {"url": "https://jobs.example/files/12h/zip", "until": int(UNTIL.timestamp())}),
        (("--list",), [{"until": int(UNTIL.timestamp()), "revoked": gone} for gone in (False, True)]),
        (("--revoke",), {"job": 7, "revoked": True}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_links_to_files(invoke: Invoke, shared: SharedJob, words: tuple[str, ...], value: object) -> None:
    outcome = invoke("job", "share", "7", *words, "--json")
    assert (outcome.exit_code, outcome.stderr) == (0, ""), outcome.stderr
    assert json.loads(outcome.stdout) == value
    assert shared.revoked is ("--revoke" in words)


async def test_a_subscription_has_its_key(dps: Dps, job_id: int) -> None:
    made = await dps.run("notify", "add", "https://example.org/hook", "--on", "failed,ended", "--wait", "5", "--json")
    assert (made.status, made.err) == (0, "")
    shown = json.loads(made.out)
    assert len(shown.pop("key")) == 64
    listed = json.loads((await dps.run("notify", "list", "--json")).out)
    assert listed == [shown | {"host": "example.org"}]


async def test_a_cancellation_has_what_came_of_it(dps: Dps, job_id: int) -> None:
    outcome = await dps.run("job", "cancel", str(job_id), "--json")
    assert (outcome.status, outcome.err) == (0, "")
    shown = json.loads(outcome.out)
    assert (shown["job"], shown["status"], shown["transaction"][:2]) == (job_id, "cancelled", "0x")
    again = await dps.run("job", "cancel", str(job_id), "--json")
    assert (again.status, again.out, again.err) == (1, "", "dps: The job is over: it is cancelled.\n")


async def test_a_running_job_has_its_request_and_its_new_limit(dps: Dps, chain: Chain, running_id: int) -> None:
    topped = await dps.run("job", "topup", str(running_id), "50", "--json")
    assert (topped.status, topped.err) == (0, "")
    shown = json.loads(topped.out)
    assert (shown["granted_minutes"], shown["locked_wei"]) == (238, str(150 * CREDIT))
    asked = json.loads((await dps.run("job", "cancel", str(running_id), "--json")).out)
    assert (asked["status"], asked["cancel_requested"]) == ("running", True)
    assert (await chain.job(running_id)).has_cancel_request
