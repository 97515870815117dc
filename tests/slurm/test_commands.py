"""Parsers against recorded answers of a real Slurm, and against unknown text."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from deepgrid.billing.entries import Allocation
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.complaints import is_outage, the_complaint
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.job_states import phase_of
from deepgrid.slurm.commands.query import limit_minutes
from deepgrid.slurm.commands.sacct import FORGOTTEN_REASON, Sacct
from deepgrid.slurm.commands.sdiag import Sdiag
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.commands.versions import wait_status
from deepgrid.slurm.observe.run_records import Marks, is_refused_start
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest, with_guard


def recorded(name: str) -> str:
    return (files("tests.slurm") / "data" / name).read_text()


def test_the_queue_gives_a_start_only_for_jobs_that_started() -> None:
    rows = {row.slurm_id: row for row in Squeue.parse(recorded("squeue.txt"))}
    assert (rows[5].state, rows[5].reason, rows[5].started_at) == ("PENDING", "JobHeldUser", None)
    assert rows[6].started_at is None, "a forecast is not a start"
    assert (rows[2].started_at, rows[2].reason, rows[2].taken_at) == (1795208201, "", 1795208180)
    assert phase_of(rows[7].state) is Phase.RUNNING, "a job that completes has no record yet"
    assert (rows[11].started_at, rows[11].restarts) == (None, 1), "requeued, and not started since"


def test_the_queue_tells_time_limits_in_minutes() -> None:
    rows = {row.slurm_id: row for row in Squeue.parse(recorded("squeue.txt"))}
    assert {number: row.limit_minutes for number, row in rows.items()} == {
        5: 5, 6: 65, 2: 26 * 60 + 3, 7: 5, 8: None, 9: None, 11: 10,
    }  # fmt: skip
    assert limit_minutes("365-00:00:00") == 525_600
    assert [limit_minutes(text) for text in ("", "INVALID", "1-", "5", "many:00")] == [None] * 5


def test_unknown_states_and_short_rows_do_not_fail() -> None:
    rows = {row.slurm_id: row for row in Squeue.parse(recorded("squeue.txt"))}
    assert phase_of(rows[9].state) is Phase.UNKNOWN
    assert rows.keys() == {2, 5, 6, 7, 8, 9, 11}, "ids are digits, and nothing else"
    assert phase_of(Sacct.parse(recorded("sacct.txt"))[6].state) is Phase.UNKNOWN
    assert phase_of("") is Phase.UNKNOWN


def test_what_the_controller_remembers_has_ends_and_wait_statuses() -> None:
    rows = {row.slurm_id: row for row in Squeue.parse(recorded("remembered.txt"))}
    assert [rows[number].exit_status for number in (1, 2, 5)] == [wait_status(7, 0), 9, 53]
    assert [rows[number].reason for number in (1, 2, 5)] == ["", "", "JobLaunchFailure"]
    assert (rows[1].started_at, rows[1].ended_at) == (1795301502, 1795301502)
    assert rows[3].ended_at is None, "a forecast is not an end"
    assert (rows[8].state, rows[8].started_at) == ("CANCELLED", None)
    assert 10 not in rows


@pytest.mark.situation(
    "versions", "squeue prints `3:0` and `0:9`, as 23.11 and later do, or raw wait statuses, as 22.05 does",
    "both are read as the same exit status",
)  # fmt: skip
def test_slurm_24_11_prints_code_and_signal_of_what_the_controller_remembers() -> None:
    """When `3:0` and `0:9` were read as wait statuses, they were 0.

    So failed launches and refused starts were billed.
    """
    rows = {row.slurm_id: row for row in Squeue.parse(recorded("remembered_24_11.txt"))}
    exits = {
        number: (row.exit_status, row.reason) for number, row in rows.items() if phase_of(row.state) is Phase.ENDED
    }
    assert exits == {
        1: (3 << 8, ""), 2: (255 << 8, ""), 4: (9, ""), 6: (53, "JobLaunchFailure"), 10: (137 << 8, ""),
        18: (0, ""),  # NODE_FAIL
        20: (15, ""), 22: (125 << 8, ""), 23: (15, ""),
    }  # fmt: skip
    (row,) = Squeue.parse("17|59999|FAILED|100|101|3:0|5:00|0|99|unit-n1|NonZeroExitCode|")
    assert row.exit_status == 768
    assert (rows[15].reason, rows[15].exit_status) == ("JobHeldUser", 0)


@pytest.mark.situation(
    "versions", "a start that the guard refused, with exit code `125:0` or `32000`",
    "it is a refused start, which costs nothing",
)  # fmt: skip
def test_a_refused_start_is_known_in_both_forms_of_its_exit_code() -> None:
    for code in ("32000", "125:0"):
        (row,) = Squeue.parse(f"17|999|FAILED|100|101|{code}|5:00|0|99|n1|NonZeroExitCode|")
        assert is_refused_start(row, Marks(tombstone=True))


@pytest.mark.parametrize("code", ["", ":", "3:", ":9", "3:0:0", "-1", "3:-9", "x", "N/A", "1e400", "999999:0", "٣:0"])
def test_an_exit_code_that_is_no_number_and_no_pair_counts_as_0(code: str) -> None:
    (queued,) = Squeue.parse(f"17|999|FAILED|100|101|{code}|5:00|0|99|n1|NonZeroExitCode|")
    (accounted,) = Sacct.parse(f"17|999|FAILED|{code}|99|100|101|n1")
    (hooked,) = Completions.parse(f"job_id=17\njob_state=5\nexit_code={code}\n")
    assert [(row.exit_status, row.reason) for row in (queued, accounted, hooked)] == [(0, "")] * 3


@pytest.mark.situation(
    "versions", "exit code 1 after the failure of a node, as 24.11 prints it", "the job has no exit status",
)  # fmt: skip
def test_a_job_whose_node_failed_has_no_exit_status_in_any_source() -> None:
    """Slurm 24.11 prints an exit code of 1 for it, which was read as signal 1."""
    sources = (
        Squeue.parse("18|999|NODE_FAIL|100|101|0:1|10:00|0|99|n1|NodeDown|"),
        Sacct.parse("18|999|NODE_FAIL|1:0|99|100|101|n1"),
        Completions.parse("job_id=18\njob_state=32775\nexit_code=1\n"),
    )
    assert [(row.state, row.exit_status) for rows in sources for row in rows] == [("NODE_FAIL", 0)] * 3


@pytest.mark.situation(
    "versions", "accounting prints `127:0` for exit code 255, and `0:0` for 128",
    "128 is known; for the others, queue and completion hook are asked first",
)  # fmt: skip
def test_accounting_hides_the_upper_half_of_exit_codes_except_128() -> None:
    rows = {row.slurm_id: row.exit_status for row in Sacct.parse(recorded("sacct_24_11.txt"))}
    assert (rows[1], rows[4], rows[6], rows[22]) == (3 << 8, 9, 53, 125 << 8)
    assert rows[3] == 128 << 8, "a failed job has no exit code 0"
    assert (rows[2], rows[10]) == (127 << 8, 9 << 8), "255 and 137 in truth, which accounting does not tell"
    assert (rows[20], rows[23]) == (0, 0), "neither a time limit nor a cancellation is exit code 128"


def test_accounting_gives_wait_statuses_and_no_invented_times() -> None:
    found = Sacct.parse(recorded("sacct.txt"))
    rows = {row.slurm_id: row for row in reversed(found)}
    assert rows[3].exit_status == 768
    assert (rows[4].state, rows[4].exit_status) == ("CANCELLED", 15)
    assert rows[5].started_at is None, "cancelled while waiting"
    assert rows[6].ended_at is None, "an unknown end is no end"
    assert (rows[7].exit_status, rows[7].started_at, rows[7].ended_at) == (0, None, None)
    assert 8 not in rows
    assert (rows[9].reason, rows[4].reason) == (FORGOTTEN_REASON, ""), "Slurm names the user who cancelled"
    assert (rows[10].state, rows[10].ended_at) == ("REQUEUED", 1795208920)
    again = [(row.user, row.follows) for row in found if row.slurm_id == 10]
    assert again == [("999", False), ("999", True), ("998", False)], (
        "only what has id and account of the queued job follows it"
    )


def test_completion_records_separate_launch_failures_from_exit_statuses() -> None:
    rows = {row.slurm_id: row for row in Completions.parse(recorded("spool.txt"))}
    assert (rows[8].state, rows[8].exit_status, rows[8].reason) == ("FAILED", 768, "")
    assert (rows[8].started_at, rows[8].ended_at) == (1795209489, 1795209490)
    assert rows[1].reason == "JobLaunchFailure"
    assert (rows[5].state, rows[5].started_at) == ("CANCELLED", None)
    assert (rows[10].exit_status, rows[10].reason) == (9, "")
    assert rows[11].state == "STATE_77"
    assert (rows[12].state, rows[12].started_at, rows[12].ended_at) == ("REQUEUED", 1795375021, 1795375025)
    assert len(rows) == 6


def test_messages_of_refusals_and_outages_are_distinguished() -> None:
    assert the_complaint("allocation failure: Invalid account") == "Invalid account"
    assert is_outage("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    assert is_outage("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
    killed = "slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=4003: Unexpected missing socket error"
    assert is_outage(f"sbatch: error: {killed}")  # the controller was killed during the query


def test_the_guard_comes_first_and_the_script_stays_whole() -> None:
    script = "#!/usr/bin/env bash\n#SBATCH --uid=0\necho 'ü'\n"
    lines = with_guard(script, "/grid/jobs/it's").decode().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert lines[1].startswith("if [ -e '/grid/jobs/it'\"'\"'s/tombstone' ]")
    assert lines[2].startswith("rm ")
    assert lines[3:] == ["#SBATCH --uid=0", "echo 'ü'"]


@pytest.mark.parametrize("script", ["echo hi\n", "#!/usr/bin/python3\nprint()\n", "", " #!/bin/sh\n"])
def test_a_script_that_cannot_be_guarded_is_refused(script: str) -> None:
    with pytest.raises(InputError):
        with_guard(script, "/grid/jobs/1")


def test_only_asked_resources_become_options() -> None:
    assert SubmitRequest(2, 4, 0, 0, 7).arguments() == ["--ntasks=2", "--cpus-per-task=4", "--time=7"]
    assert "--gpus=3" in SubmitRequest(1, 1, 100, 3, 7).arguments()


def test_a_grid_folder_that_slurm_would_expand_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        LoginSettings("host", 22, "user", Path("/key"), Path("/known"), grid_root="/a/%j")


def test_no_script_makes_files_outside_the_grids_folders() -> None:
    """A job can fill /tmp. Some shells write here-documents there."""
    for file in files("deepgrid.slurm.remote").iterdir():
        if file.name.endswith(".sh"):
            text = file.read_text()
            assert "<<" not in text, file.name
            assert set(re.findall(r"mktemp [^\n)]*", text)) <= {
                'mktemp -d "$folder/place.XXXXXXXX"', 'mktemp -d "$home/XXXXXXXX"',
                'mktemp "$place/.doctor.XXXXXX" 2> /dev/null', 'mktemp "$root/.doctor.XXXXXX" 2> /dev/null',
            }, file.name  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason", "used_s"),
    [
        ("Resources|0:00|", "Resources", 0),
        ("None|1-02:03:04|", "", 93784),
        ("a | b|0:07|", "a | b", 7),
        ("NonZeroExitCode|", "NonZeroExitCode", None),
    ],
)
def test_the_queue_ends_with_the_reason_and_the_time_that_the_job_ran(
    text: str, reason: str, used_s: int | None
) -> None:
    (row,) = Squeue.parse(f"17|999|PENDING|N/A|N/A|0:0|5:00|0|99||{text}")
    assert (row.reason, row.used_s) == (reason, used_s)


def test_suspended_time_is_what_slurm_did_not_count() -> None:
    (row,) = Squeue.parse("13|999|COMPLETED|100|112|0:0|5:00|0|99|n1|None|0:02|")
    (accounted,) = Sacct.parse("13|999|COMPLETED|0:0|99|100|112|n1|00:00:10")
    assert (row.suspended_s, accounted.suspended_s, accounted.nodes) == (10, 10, "n1")


@pytest.mark.parametrize(
    ("texts", "given"),
    [
        ("billing=4,cpu=4,gres/gpu=2,mem=1536M,node=2|billing=4,cpu=4,mem=1536M,node=3", Allocation(4, 2, 1536, 2, 3)),
        ("cpu=1,mem=2G,node=1|cpu=1", Allocation(1, 1, 2048)),
        ("cpu=1,mem=1.50G|", Allocation(1)),
        ("cpu=x,mem=M,node|cpu", Allocation()),
        ("|cpu=1,node=1", Allocation()),
    ],
)
def test_accounting_says_what_a_job_was_given(texts: str, given: Allocation) -> None:
    (row,) = Sacct.parse(f"13|999|COMPLETED|0:0|99|100|112|n1|00:00:10|{texts}")
    assert row.given == given


def test_a_job_without_gpus_has_none_where_accounting_counts_them() -> None:
    lines = ("cpu=1,gres/gpu=1,mem=1M,node=1", "cpu=1,mem=1M,node=1")
    rows = Sacct.parse("\n".join(f"13|999|COMPLETED|0:0|99|100|112|n1|00:00:00|{line}|" for line in lines))
    assert [row.given.gpus for row in rows] == [1, 0]


@pytest.mark.parametrize(
    ("text", "backlog"),
    [
        ("Agent queue size:     9\nDBD Agent queue size: 12\n", 12),
        ("", 0),
        ("DBD Agent: x", 0),
    ],
)
def test_the_controller_says_how_many_records_accounting_lacks(text: str, backlog: int) -> None:
    assert Sdiag.parse(text) == backlog


def test_accounting_names_the_account_that_cancelled() -> None:
    text = "9|999|CANCELLED by 0|0:0|99|100|112|n1|00:00:00\n10|999|CANCELLED|0:0|99|100|112|n1|00:00:00"
    by_root, forgotten = Sacct.parse(text)
    assert (by_root.state, by_root.cancelled_by, by_root.reason) == ("CANCELLED", "0", "")
    assert (forgotten.state, forgotten.cancelled_by, forgotten.reason) == ("CANCELLED", "", "forgotten")


def test_squeue_shows_that_slurm_preempts_a_job() -> None:
    row = "7|999|COMPLETING|100|160|36608|5:00|0|90|n1|a|reason|1:00|{}|"
    rows = [Squeue.parse(row.format(shown))[0] for shown in ("N/A", "0", "150")]
    assert [one.preempted for one in rows] == [False, False, True]
    assert {(one.reason, one.used_s) for one in rows} == {("a|reason", 60)}
