"""`dps job`: reading, following and cancelling jobs of a real grid."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import subprocess
import time
from pathlib import Path

from deepgrid.billing.credits import format_credits
from deepgrid.chain.client import Chain
from deepgrid.client.display.text import moment_utc
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.messages import LogPosition
from tests.appending import push_log
from tests.cli.live import CREDIT, EXAMPLE, WITHIN_S, Dps, Live, Party, finished


async def test_a_pending_job_says_why_it_waits(dps: Dps, job_id: int, operator: Party) -> None:
    silent = await dps.run("job", "get", str(job_id))
    assert "the meta-scheduler has not found a cluster for it yet" in silent.out
    assert re.search(r"queue +position \d+ of \d+ among the jobs that wait for a cluster", silent.out)
    place = "3rd in line, 2 jobs of others first; your share of CPUs is 41 %; estimated start 12:40 UTC at alpha"
    await operator.services.post_notice(job_id, "waiting", f"{place}; 2 clusters are full")
    outcome = await dps.run("job", "get", str(job_id))
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(f"job {job_id}  hello-world  PENDING\n")
    assert re.search(f"why it waits +{place}; 2 clusters are full", outcome.out)
    assert "queue" not in outcome.out, "one place only: the one in the scheduler's line"
    assert re.search(r"conditions +gpu:in:nvidia", outcome.out)
    record = json.loads((await dps.run("job", "get", str(job_id), "--json")).out)
    assert record["why_it_waits"].startswith(place)
    assert (record["id"], record["status"], record["locked_wei"], record["bill"]) == (
        job_id, "pending", str(100 * CREDIT), None,
    )  # fmt: skip


async def test_a_job_is_shown_without_the_services(live: Live, dps: Dps, job_id: int, tmp_path: Path) -> None:
    book = live.address_book().model_copy(update={"definitions_url": "http://127.0.0.1:1"})
    outcome = await dps.run("job", "get", str(job_id), "--book", book.save(tmp_path / "book.json"))
    assert outcome.status == 0
    assert "the services may know more, but do not answer" in outcome.out


async def test_cancelling_before_the_claim_gives_everything_back(dps: Dps, chain: Chain, job_id: int) -> None:
    outcome = await dps.run("job", "cancel", str(job_id))
    assert outcome.status == 0
    assert f"job {job_id} is cancelled; 100 credits came back." in outcome.out
    assert (await chain.job(job_id)).status is JobStatus.CANCELLED
    again = await dps.run("job", "cancel", str(job_id))
    assert (again.status, again.err) == (1, "dps: The job is over: it is cancelled.\n")
    record = json.loads((await dps.run("job", "get", str(job_id), "--json")).out)
    assert (record["exit_status"], record["bill"]["refunded_wei"]) == (125, str(100 * CREDIT))


async def test_cancelling_a_running_job_says_what_comes_next(dps: Dps, chain: Chain, running_id: int) -> None:
    outcome = await dps.run("job", "cancel", str(running_id))
    assert outcome.status == 0
    assert f"job {running_id} is running: its cluster has been asked to stop it" in outcome.out
    assert (await chain.job(running_id)).has_cancel_request
    shown = (await dps.run("job", "get", str(running_id))).out
    assert "to be cancelled: alpha has been asked to stop it" in shown
    assert re.search(r"cost so far +0\.628 credits for 1 minute, of 159 minutes paid for", shown)


async def test_a_second_cancel_says_what_stays_locked_and_until_when(live: Live, dps: Dps, running_id: int) -> None:
    first = await dps.run("job", "cancel", str(running_id))
    assert "If it is not settled in 10 minutes, cancel it again" in first.out
    live.grid.anvil.pass_time(600)
    second = await dps.run("job", "cancel", str(running_id))
    told = json.loads((await dps.run("job", "get", str(running_id), "--json")).out)
    back, until = format_credits(int(told["released_wei"])), moment_utc(told["held_until"])
    held = format_credits(int(told["locked_wei"]) - int(told["released_wei"]))
    words = f"{held} credits stay locked until {until}, or until the cluster reports; {back} credits came back."
    assert words in second.out
    assert words in (await dps.run("job", "get", str(running_id))).out


async def test_logs_are_followed_to_their_end(dps: Dps, running_id: int, provider: Party) -> None:
    following = await dps.start("job", "logs", str(running_id), "--follow", "--no-timestamp")
    offset = await push_log(provider.services, running_id, 0, b"one\ntw")
    assert following.stdout is not None
    async with asyncio.timeout(60):
        assert await following.stdout.readline() == b"one\n"
    until_now = await dps.run("job", "logs", str(running_id))
    assert (until_now.status, until_now.out) == (0, "one\ntw\n")
    offset = await push_log(provider.services, running_id, offset, b"o\n")
    await provider.writer.settle(running_id, JobStatus.FINISHED, 1)
    await push_log(provider.services, running_id, offset, b"", final=True)
    assert await finished(following) == type(until_now)(0, "two\n", "")
    timed = await dps.run("job", "logs", str(running_id), "--follow")
    assert re.fullmatch(r"(\d\d:\d\d:\d\d  \| (one|two)\n){2}", timed.out)


async def test_what_a_log_lacks_is_said(dps: Dps, chain: Chain, running_id: int, provider: Party) -> None:
    claimed_at, ship = (await chain.job(running_id)).claimed_at, provider.services.ship_log
    head = await ship(running_id, claimed_at, LogPosition(), b"head\n", LogPosition(5, 5), pending=1_006)
    so_far = await dps.run("job", "logs", str(running_id))
    assert (so_far.status, so_far.out) == (0, "head\n")
    assert "The log is not whole: 1,006 bytes are still to come." in so_far.err
    waiting = await dps.start("job", "logs", str(running_id), "--all")
    await provider.writer.settle(running_id, JobStatus.FINISHED, 1)
    gap = await ship(running_id, claimed_at, head, b"[gap]\n", head.after_gap(b"[gap]\n", 1_000), pending=6)
    await ship(running_id, claimed_at, gap, b"tail\n\n", gap.after(b"tail\n\n"), final=True)
    whole = await finished(waiting)
    assert (whole.status, whole.out) == (1, "head\n[gap]\ntail\n\n")
    assert whole.err.count("The log is not whole: 1,000 bytes are left out.") == whole.err.count("\n") == 1
    plain = await dps.run("job", "logs", str(running_id), "--tail", "1")
    assert (plain.status, plain.out) == (0, "\n") and "1,000 bytes are left out" in plain.err


async def test_a_whole_log_is_said_to_be_whole(dps: Dps, running_id: int, provider: Party) -> None:
    await push_log(provider.services, running_id, 0, b"all\n", final=True)
    outcome = await dps.run("job", "logs", str(running_id), "--all")
    assert (outcome.status, outcome.out) == (0, "all\n")
    assert outcome.err.endswith("The log is whole: 4 bytes.\n")
    refused = await dps.run("job", "logs", str(running_id), "--all", "--tail", "2")
    assert (refused.status, refused.out) == (2, "") and "--all prints the whole output" in refused.err


async def test_a_job_that_has_written_nothing_says_so(dps: Dps, job_id: int) -> None:
    outcome = await dps.run("job", "logs", str(job_id))
    assert (outcome.status, outcome.out) == (0, "")
    assert f"job {job_id} is pending; it has no stored output" in outcome.err


async def test_a_log_as_json_has_every_byte_and_its_time(dps: Dps, running_id: int, provider: Party) -> None:
    odd = b"one\r\n\xff\x00\a\x1b[2Jtwo\n\xc3\xa9\n" + b"x" * 70_000 + b"\nend"
    begun = int(time.time())
    offset = await push_log(provider.services, running_id, 0, odd[:17])  # cut in the middle of a character
    await push_log(provider.services, running_id, offset, odd[17:], final=True)
    outcome = await dps.run("job", "logs", str(running_id), "--json", "--all")
    assert (outcome.status, "\x1b" in outcome.out) == (0, False)
    records = [json.loads(line) for line in outcome.out.splitlines()]
    starts = ["one\r\n", "", "\N{LATIN SMALL LETTER E WITH ACUTE}\n", "xxxxx", "xxxxx", "end"]
    assert [record.get("text", "")[:5] for record in records] == starts
    written = b"".join(base64.b64decode(one["base64"]) if "base64" in one else one["text"].encode() for one in records)
    assert written == odd
    assert {record["claim"] for record in records} == {1}
    assert all(begun - 60 <= record["written"] <= time.time() + 60 for record in records)
    for other in ("--raw", "--timestamps", "--tail=2"):
        refused = await dps.run("job", "logs", str(running_id), "--json", other)
        assert (refused.status, refused.out) == (2, "") and "--json prints all lines" in refused.err


async def test_another_customers_output_is_not_shown(live: Live, dps: Dps, job_id: int) -> None:
    outcome = await dps.run("job", "logs", str(job_id), "--key", live.grid.operator_key)
    assert (outcome.status, outcome.out) == (1, "")
    assert "only its customer reads" in outcome.err and outcome.err.count("\n") == 1


async def test_jobs_are_listed_newest_first(dps: Dps, job_id: int) -> None:
    await dps.run("submit", EXAMPLE, "--credits", "100", "--job-name", "second")
    listed = (await dps.run("job", "list")).out.splitlines()
    assert listed[0].split() == ["ID", "STATE", "NAME", "CLUSTER", "SUBMITTED", "COST", "LOCKED"]
    assert [line.split()[2] for line in listed[1:]] == ["second", "hello-world"]
    assert [job["name"] for job in json.loads((await dps.run("job", "list", "--json", "-n", "1")).out)] == ["second"]


async def test_changes_are_printed_as_lines_in_a_pipe(dps: Dps, job_id: int) -> None:
    process = await dps.start("job", "list", "--watch", "--state", "pending,cancelled")
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN_S):
        assert (await process.stdout.readline()).decode().split()[:2] == ["ID", "STATE"]
        assert (await process.stdout.readline()).decode().split()[:2] == [str(job_id), "pending"]
        assert (await dps.run("job", "cancel", str(job_id))).status == 0
        assert (await process.stdout.readline()).decode().split()[1:] == ["CANCELLED", "job", str(job_id)]
    process.send_signal(signal.SIGINT)
    assert (await finished(process)).status == 130


async def test_a_job_that_does_not_exist(dps: Dps) -> None:
    outcome = await dps.run("job", "get", "999999")
    assert (outcome.status, outcome.err) == (1, "dps: Job 999999 does not exist.\n")


async def test_a_log_into_a_file_has_the_bytes_that_were_written(
    dps: Dps, running_id: int, provider: Party, tmp_path: Path
) -> None:
    odd = b"one\r\n\xff\x00\a\x1b[2Jtwo\n" + b"x" * 70_000 + b"\nend"
    await push_log(provider.services, running_id, 0, odd, final=True)
    with (tmp_path / "log").open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *dps.command("job", "logs", str(running_id), "--all"),
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, env=dps.environment, cwd=str(dps.home),
        )  # fmt: skip
        outcome = await finished(process)
    assert (outcome.status, (tmp_path / "log").read_bytes()) == (0, odd)
    assert outcome.err.endswith(f"The log is whole: {len(odd):,} bytes.\n")
    lines = await dps.run("job", "logs", str(running_id))
    assert lines.out == "one\ntwo\n".replace("t", "\N{REPLACEMENT CHARACTER}t") + "x" * 70_000 + "\nend\n"
    timed = await dps.run("job", "logs", str(running_id), "--timestamps")
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \| .*\n){4}", timed.out)
    refused = await dps.run("job", "logs", str(running_id), "--raw", "--tail", "2")
    assert (refused.status, refused.out) == (2, "") and "--raw prints bytes, not lines" in refused.err
