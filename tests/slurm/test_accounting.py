"""Slurm's side of the books from real accounting: one query returns all runs of a period by claim."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from deepgrid.billing.entries import Run, Runs, Span
from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision import accounting
from deepgrid.slurm.supervision.accounting import WITHOUT_ACCOUNTING, read_runs
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key, until


def today() -> Span:
    now = int(time.time())
    return Span(now - 3600, now + 60)


def of(runs: Runs, key: JobKey) -> list[Run]:
    return [run for run in runs.runs if (run.job_id, run.claimed_at) == (key.job_id, key.claimed_at)]


class OtherSacct:
    """A real login whose sacct gives a fixed answer."""

    def __init__(self, login: Login, exit_status: int, complaint: bytes, answer: bytes = b"") -> None:
        self._login = login
        self._answer = CommandResult(exit_status, answer, complaint)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        return self._answer if "sacct" in argv else await self._login.run(argv, stdin=stdin, timeout_s=timeout_s)

    async def close(self) -> None:
        await self._login.close()


async def accounted(cluster: Cluster, key: JobKey) -> Run:
    """Wait until accounting has the end of the claim's run, and return the run. The query does not name the claim."""
    deadline = time.monotonic() + WAIT_S
    while not (found := [run for run in of(await read_runs(cluster, today(), key, []), key) if run.ended_at]):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.3)
    (run,) = found
    return run


async def test_all_runs_of_a_period_come_by_claim(login: Login, cluster: Cluster, monitor: SlurmMonitor) -> None:
    good, bad = new_key(), new_key()
    await cluster.submit(good, bash("true"), SMALL)
    await cluster.submit(bad, bash("exit 3"), SMALL)
    for key, state, status in ((good, "COMPLETED", 0), (bad, "FAILED", 768)):
        end = await ended(monitor, key)
        run = await accounted(cluster, key)
        assert (run.state, run.exit_status) == (state, status)
        assert (run.slurm_id, run.started_at, run.ended_at) == (end.slurm_id, end.started_at, end.ended_at)
        assert (run.given.cpus, run.given.nodes, run.given.mem_mb, run.given.wanted_nodes) == (1, 1, 100, 1)


async def test_jobs_of_another_grid_are_not_in_the_books(
    login: Login, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("true"), SMALL)
    await ended(monitor, key)
    await accounted(cluster, key)
    elsewhere = replace(key, chain_id=key.chain_id + 1)
    assert (await read_runs(cluster, today(), elsewhere, [])).runs == ()


async def test_a_claim_of_any_age_is_found(login: Login, cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    await cluster.submit(key, bash("true"), SMALL)
    await ended(monitor, key)
    next_week = Span(int(time.time()) + 7 * 86400, int(time.time()) + 8 * 86400)
    (run,) = of(await read_runs(cluster, next_week, key, [key]), key)
    assert run.state == "COMPLETED"


async def test_a_claim_whose_folder_is_gone_is_known_by_the_ledger(
    box: Box, login: Login, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("true"), SMALL)
    await ended(monitor, key)
    await accounted(cluster, key)
    await cluster.acknowledge(key)
    shutil.rmtree(box.folder(key))
    for claims in ([key], []):
        assert len(of(await read_runs(cluster, today(), key, claims), key)) == 1


async def test_a_running_job_has_no_end(login: Login, cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    (run,) = of(await read_runs(cluster, today(), key, [key]), key)
    assert (run.state, run.ended_at) == ("RUNNING", None)
    assert run.started_at is not None
    await cluster.cancel(key)


async def test_without_accounting_the_books_use_completion_records_and_say_so(
    login: Login, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("exit 3"), SMALL)
    await ended(monitor, key)
    disabled = OtherSacct(login, 1, b"sacct: error: Slurm accounting storage is disabled\n")
    runs = await read_runs(Cluster(disabled, cluster.settings), today(), key, [key, new_key()])
    assert (runs.complete, runs.source) == (False, WITHOUT_ACCOUNTING)
    assert [(run.state, run.exit_status) for run in runs.runs] == [("FAILED", 768)]


async def test_while_records_wait_for_accounting_a_missing_one_proves_nothing(
    cluster: Cluster, key: JobKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage of slurmdbd the controller sends its records within minutes."""
    assert not (await read_runs(cluster, today(), key, [])).late
    monkeypatch.setattr(accounting, "BACKLOG_PAUSES_S", (0, 0))
    monkeypatch.setattr(cluster, "accounting_backlog", AsyncMock(side_effect=[7, 0]))
    assert (await read_runs(cluster, today(), key, [])).complete
    monkeypatch.setattr(cluster, "accounting_backlog", AsyncMock(return_value=7))
    runs = await read_runs(cluster, today(), key, [])
    assert (runs.complete, runs.late) == (False, True)


async def test_an_outage_of_accounting_is_an_error(login: Login, cluster: Cluster, key: JobKey) -> None:
    away = OtherSacct(login, 1, b"sacct: error: Unable to connect to slurmdbd\n")
    with pytest.raises(SlurmUnreachable, match="does not answer: Unable to connect"):
        await read_runs(Cluster(away, cluster.settings), today(), key, [key])


def told(box: Box, key: JobKey, *ends: str) -> bytes:
    """Return accounting's rows of a claim. Each of `ends` is state, exit code, submission, start and end."""
    box.folder(key).mkdir()
    (box.folder(key) / "account").write_text("jobs 4242\n")
    slurm_id = 10**9 + key.job_id % 10**8
    with (Path(box.settings.grid_root) / "ledger").open("a") as ledger:
        ledger.write(f"{slurm_id} {key.folder} 4242 900\n")
    return "".join(f"{slurm_id}|4242|{end}|n1\n" for end in ends).encode()


async def test_of_two_ends_of_one_start_the_first_counts(box: Box, login: Login, cluster: Cluster, key: JobKey) -> None:
    """A node that failed may report later that the job completed."""
    rows = told(box, key, "COMPLETED|0:0|900|1000|1100", "NODE_FAIL|0:0|900|1000|1050")
    (run,) = (await read_runs(Cluster(OtherSacct(login, 0, b"", rows), cluster.settings), today(), key, [])).runs
    assert (run.state, run.ended_at) == ("NODE_FAIL", 1050)


async def test_a_refused_start_and_a_payload_with_the_same_status_are_distinguished(
    box: Box, login: Login, cluster: Cluster, key: JobKey
) -> None:
    rows = told(box, key, "FAILED|125:0|900|1000|1009", "FAILED|125:0|900|1100|1101")
    runs = (await read_runs(Cluster(OtherSacct(login, 0, b"", rows), cluster.settings), today(), key, [])).runs
    assert sorted((run.started_at, run.guarded) for run in runs) == [(1000, False), (1100, True)]


async def test_the_parts_of_a_requeued_or_resized_job_are_one_run(
    box: Box, login: Login, cluster: Cluster, key: JobKey
) -> None:
    parts = "REQUEUED|0:0|900|1000|1065", "RESIZING|0:0|1185|1200|1230", "COMPLETED|0:0|1230|1230|1260"
    rows = told(box, key, *parts)
    (run,) = (await read_runs(Cluster(OtherSacct(login, 0, b"", rows), cluster.settings), today(), key, [])).runs
    assert (run.started_at, run.ended_at, run.ran_s) == (1000, 1260, 65 + 60)


async def test_a_row_of_another_account_belongs_to_no_claim_whatever_its_id(
    box: Box, login: Login, cluster: Cluster, key: JobKey
) -> None:
    rows = told(box, key, "COMPLETED|0:0|900|1000|1065").replace(b"|4242|", b"|4243|")
    assert (await read_runs(Cluster(OtherSacct(login, 0, b"", rows), cluster.settings), today(), key, [])).runs == ()


async def test_a_job_that_got_the_id_of_a_lost_one_is_no_run_of_its_claim(
    box: Box, login: Login, cluster: Cluster, key: JobKey
) -> None:
    rows = told(box, key, "CANCELLED|0:0|900|1000|1065", "COMPLETED|0:0|1100|1100|1300")
    runs = (await read_runs(Cluster(OtherSacct(login, 0, b"", rows), cluster.settings), today(), key, [])).runs
    assert [(run.started_at, run.ended_at) for run in runs] == [(1000, 1065)]


async def test_jobs_of_customers_accounts_without_a_claim_are_named(
    box: Box, login: Login, cluster: Cluster, key: JobKey
) -> None:
    now = int(time.time())
    rows = told(box, key, f"COMPLETED|0:0|900|{now - 100}|{now - 35}")
    known = rows.split(b"|")[0]
    unknown = rows.replace(known, b"1000000001") + rows.replace(known, b"1000000002").replace(b"|4242|", b"|4243|")
    old = f"1000000003|4242|COMPLETED|0:0|900|{now - 9999}|{now - 9990}|n1\n".encode()
    told_all = Cluster(OtherSacct(login, 0, b"", rows + unknown + old), cluster.settings)
    runs = await read_runs(told_all, today(), key, [])
    assert [(job.slurm_id, job.account) for job in runs.foreign] == [(1000000001, "4242")]


def test_times_are_asked_for_in_utc() -> None:
    argv = Sacct(0, 86400).argv()
    assert "TZ=UTC" in argv
    assert argv[argv.index("-S") + 1] == "1970-01-01T00:00:00"
    assert argv[argv.index("-E") + 1] == "1970-01-02T00:00:00"
