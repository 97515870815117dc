"""A customer's account cannot change its own claim, and so it cannot change its bill."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from tests.attacks.on_slurm import ALICE, ENDED, Claim, Site
from tests.slurm.support import WAIT_S, bash, new_key

HOOK = "job_submit.lua refuses every change of a claim"
UPDATES = {
    "requeue the job (requeue=1, then requeue)": ["requeue=1"],
    "give back a node shortly before the end": ["numnodes=1"],
    "shorten or lengthen the time limit": ["timelimit=1", "timelimit=9999", "timelimit=+30"],
    "hold the job, or change its priority": ["priority=0", "priority=99999", "nice=100", "nice=-100", "hold"],
    "take another name or comment": ["jobname=0xother", "comment=deepgrid:other", "comment=", "jobname=a\n7|RUNNING"],
    "start later, or after another job": ["starttime=now+1hour", "dependency=singleton", "deadline=now+2hour"],
    "get more resources than were paid": [
        "numcpus=16",
        "minmemorycpu=1",
        "oversubscribe=yes",
        "numtasks=16",
        "minmemorynode=9",
    ],
    "run on another partition or node": [
        "partition=main",
        "reqnodelist=attack-n1",
        "excnodelist=attack-n2",
        "features=x",
        "qos=normal",
    ],
    "charge it to another account": ["account=root", "wckey=x", "admincomment=deepgrid:x", "userid=0"],
    "write its output elsewhere": ["stdout=/tmp/x", "workdir=/tmp", "mailuser=root", "mailtype=ALL"],
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            changes, id=what,
            marks=pytest.mark.attack(
                f"scontrol update: {what}", attacker="a job's account", gain="nothing", defence=HOOK
            ),
        )
        for what, changes in UPDATES.items()
    ],
)  # fmt: skip
def test_its_own_claim_cannot_be_changed(site: Site, running: Claim, waiting: Claim, changes: list[str]) -> None:
    for claim in (running, waiting):
        before = site.record(claim.slurm_id)
        for change in changes:
            said = site.alice.run("scontrol", "update", f"jobid={claim.slurm_id}", change)
            assert said.status != 0, (change, said)
        assert site.record(claim.slurm_id) == before


@pytest.mark.parametrize("verb", ["hold", "uhold", "release", "requeue", "requeuehold", "suspend", "resume", "top"])
@pytest.mark.attack(
    "scontrol hold, release, requeue, suspend, resume, top", attacker="a job's account", gain="nothing",
    defence="the hook handles hold and release as changes; --no-requeue and Slurm's privileges refuse the others",
)  # fmt: skip
def test_its_own_claim_cannot_be_stopped_or_moved(site: Site, running: Claim, waiting: Claim, verb: str) -> None:
    for claim in (running, waiting):
        before = site.record(claim.slurm_id)
        site.alice.run("scontrol", verb, str(claim.slurm_id))
        assert site.record(claim.slurm_id) == before


@pytest.mark.attack(
    "allow a requeue, then requeue the job", attacker="a job's account", gain="nothing",
    defence="the hook refuses the change, so --no-requeue stays in force",
)  # fmt: skip
def test_a_claim_is_not_requeued(site: Site, running: Claim) -> None:
    site.alice.run("scontrol", "update", f"jobid={running.slurm_id}", "requeue=1")
    said = site.alice.run("scontrol", "requeue", str(running.slurm_id))
    assert said.status != 0
    assert "Restarts=0" in site.record(running.slurm_id)
    assert site.state(running.slurm_id) == "RUNNING"


@pytest.mark.attack(
    "change the comment of the claim in the accounting", attacker="a job's account", gain="nothing",
    defence="slurmdbd lets only operators change jobs",
)  # fmt: skip
def test_the_comment_in_accounting_cannot_be_changed(site: Site) -> None:
    key = new_key()
    slurm_id = site.submit(key, bash("exit 3"), ALICE)
    site.until(slurm_id, *ENDED)
    deadline = time.monotonic() + WAIT_S
    while not all(text in (row := _accounted(site, slurm_id)) for text in (key.name, key.comment)):
        assert time.monotonic() < deadline, row
        time.sleep(0.5)
    for change in ("comment=other", "derivedexitcode=7", "extra=x", "wckey=x", "newjobid=99"):
        site.alice.run("sacctmgr", "-i", "modify", "job", "where", f"jobid={slurm_id}", "set", change)
    assert _accounted(site, slurm_id) == row


def _accounted(site: Site, slurm_id: int) -> str:
    fields = "JobID,JobName,Comment,State,ExitCode,DerivedExitCode,Start,End"
    return site.box.slurm("sacct", "-n", "-P", "-X", "-a", "-j", str(slurm_id), "-o", fields)


@pytest.mark.attack(
    "options in comments of the script (#SBATCH, #BSUB, #PBS)", attacker="a customer", gain="nothing",
    defence="sbatch --ignore-pbs; #SBATCH counts only above the guard",
)  # fmt: skip
def test_a_script_gives_sbatch_no_options(site: Site) -> None:
    key = new_key()
    tricks = [
        "#BSUB -J evil",
        "#BSUB -x",
        "#BSUB -e /tmp/evil",
        "#PBS -N evil",
        "#PBS -W depend=after:1",
        "#SBATCH -J evil",
    ]
    slurm_id = site.submit(key, bash("\n".join([*tricks, "true"])), ALICE)
    record = site.record(slurm_id)
    assert f"JobName={key.name}" in record
    assert "evil" not in record and "OverSubscribe=OK" in record


@pytest.mark.attack(
    "steps (srun) within the claim", attacker="a job's account", gain="the resources that the claim pays for",
    defence="steps are not submissions, and they end with the job",
)  # fmt: skip
def test_steps_within_the_claim_run(site: Site) -> None:
    key = new_key()
    slurm_id = site.submit(
        key, bash("srun -n1 id -un; until srun --overlap -n1 echo again 2>/dev/null; do sleep 1; done"), ALICE
    )
    site.until(slurm_id, *ENDED)
    output = site.box.folder(key) / "output.log"
    assert output.read_text().split() == [site.alice.name, "again"]


def _records(site: Site, key: JobKey) -> list[dict[str, str]]:
    """Return the claim's completion records by restart count, with one line per field."""
    found = []
    for file in Path(site.settings.grid_root, "spool").glob("[0-9]*"):
        lines = file.read_text().splitlines()
        record = dict(line.split("=", 1) for line in lines)
        if record["comment"].startswith(key.comment):
            assert len(lines) == len(record) == 11
            found.append(record)
    return sorted(found, key=lambda record: int(record["restart_cnt"]))


@pytest.mark.attack(
    "a job name that contains a completion record", attacker="an account that may submit as the grid", gain="nothing",
    defence="jobcomp.lua writes one value per line",
)  # fmt: skip
def test_a_completion_record_has_one_line_per_field(site: Site) -> None:
    key = new_key()
    name = "a\ncomment=deepgrid:forged\nuser_id=0\x7f\r"
    submitted = site.box.slurm(
        "sbatch", "--parsable", f"--comment={key.comment}", f"--job-name={name}", "--output=/dev/null", "--wrap=true"
    )
    site.until(int(submitted), *ENDED)
    (record,) = _records(site, key)
    assert record["name"] == "a comment=deepgrid:forged user_id=0  "


def test_each_segment_of_a_requeued_job_has_its_record(site: Site) -> None:
    """An administrator requeues a claim, and the earlier run is recorded."""
    key = new_key()
    slurm_id = site.submit(key, bash("sleep 600"), ALICE)
    site.until(slurm_id, "RUNNING")
    site.box.slurm("scontrol", "update", f"jobid={slurm_id}", "requeue=1")
    site.box.slurm("scontrol", "requeue", str(slurm_id))
    site.until(slurm_id, "PENDING")
    site.box.slurm("scancel", str(slurm_id))
    site.until(slurm_id, *ENDED)
    deadline = time.monotonic() + WAIT_S
    while len(found := _records(site, key)) < 2:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    first, last = found
    assert int(first["job_state"]) & 1024, "JOB_REQUEUE"
    assert int(first["start_time"]) <= int(first["end_time"])
    assert last["restart_cnt"] == "1"
