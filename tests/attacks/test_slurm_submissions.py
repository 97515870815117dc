"""A customer's account or another user of the cluster submits unpaid jobs to Slurm."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.attacks.on_slurm import ALICE, Claim, Person, Site
from tests.slurm.people import account
from tests.slurm.support import WAIT_S, bash, new_key

SCRIPT = "#!/bin/sh\nsleep 600\n"
SUBMISSIONS = {
    "sbatch": ["sbatch", "--output=/dev/null"],
    "sbatch --wrap": ["sbatch", "--output=/dev/null", "--wrap=sleep 600"],
    "a job array": ["sbatch", "--output=/dev/null", "--array=1-10"],
    "a heterogeneous job": ["sbatch", "--output=/dev/null", "-n1", ":", "-n1", "--wrap=true"],
    "a held job, or one with a later begin time": ["sbatch", "--hold", "--begin=now+1hour"],
    "a job with the comment of a claim": ["sbatch", "--comment=deepgrid:31337:1"],
    "a job as another user (--uid)": ["sbatch", "--uid=root", "--wrap=true"],
    "salloc": ["salloc", "--no-shell", "-n1"],
    "an allocation by srun": ["srun", "--immediate=5", "-n1", "sleep", "600"],
    "a job that depends on the claim": ["sbatch", "--dependency=afterany:1", "--wrap=true"],
    "sbatch with an empty environment": ["env", "-i", "/usr/bin/sbatch", "--wrap=true"],
}
HOOK = "job_submit.lua refuses submissions by accounts of customers"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command, id=what,
            marks=pytest.mark.attack(f"submit {what}", attacker="a job's account", gain="nothing", defence=HOOK),
        )
        for what, command in SUBMISSIONS.items()
    ],
)  # fmt: skip
def test_a_customers_account_submits_nothing(site: Site, command: list[str]) -> None:
    """Alice's account is in the table of accounts. Bob's account matches the pattern."""
    for person in (site.alice, site.bob):
        before = person.jobs()
        said = person.run(*command, stdin=SCRIPT)
        assert said.status != 0, said
        assert person.jobs() == before


@pytest.mark.attack(
    "submit from inside a claimed job", attacker="a job's account", gain="nothing",
    defence="the hook checks the submitting user, wherever the command runs",
)  # fmt: skip
def test_a_claimed_job_submits_nothing(site: Site) -> None:
    key, before = new_key(), site.alice.jobs()
    tricks = [
        "sbatch -o /dev/null --wrap=true", "env -i SLURM_CONF=$SLURM_CONF /usr/bin/sbatch --wrap=true",
        "salloc --no-shell -n1", "env -u SLURM_JOB_ID -u SLURM_JOBID srun --immediate=5 -n1 true",
        "sbatch -a 1-3 --wrap=true", "sbatch -n1 : -n1 --wrap=true", "sbatch --jobid=$SLURM_JOB_ID --wrap=true",
    ]  # fmt: skip
    body = "\n".join(f"( {trick} ) > /dev/null 2>&1 && echo 'worked: {trick}'" for trick in tricks)
    slurm_id = site.submit(key, bash(f"{body}\necho done"), ALICE)
    output = site.box.folder(key) / "output.log"
    deadline = time.monotonic() + WAIT_S
    while not (output.exists() and output.read_text().endswith("done\n")):
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.1)
    assert output.read_text() == "done\n"
    assert site.alice.jobs() == [*before, slurm_id]


@pytest.fixture(scope="module")
def stranger(site: Site) -> Iterator[Person]:
    """A user of the cluster who is not a customer of the grid."""
    with account() as name:
        yield Person(site.box, name)


TEXTS = {
    "name": "--job-name=a\n7|RUNNING|0xclaim",
    "comment": "--comment=x\n7|deepgrid:31337:1",
    "account": "--account=a\nb",
    "wckey": "--wckey=a\tb",
    "working folder": "--chdir=/tmp/a\nb",
    "output file": "--output=/tmp/a\rb",
    "mail address": "--mail-user=a\x1b[2Jb",
}


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(
            option, id=what,
            marks=pytest.mark.attack(
                f"control characters in a job's {what}", attacker="another user of the cluster", gain="nothing",
                defence="job_submit.lua refuses them; parsers do not rely on it",
            ),
        )
        for what, option in TEXTS.items()
    ],
)  # fmt: skip
def test_texts_with_control_characters_are_refused(site: Site, stranger: Person, option: str) -> None:
    before = stranger.jobs()
    said = stranger.run("sbatch", "--hold", "--output=/dev/null", option, "--wrap=true")
    assert said.status != 0, said
    assert stranger.jobs() == before


@pytest.mark.attack(
    "pass a job off as a claim, with a comment of the grid at submission or later",
    attacker="another user of the cluster", gain="nothing",
    defence="job_submit.lua reserves comments that begin with 'deepgrid:'",
)  # fmt: skip
def test_a_user_of_the_cluster_can_submit_jobs_but_no_claims(site: Site, stranger: Person, running: Claim) -> None:
    comment = running.key.comment
    assert stranger.run("sbatch", "--hold", f"--comment={comment}", "--wrap=true").status != 0
    said = stranger.run("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true")
    assert said.status == 0, said
    slurm_id = said.text.strip()
    try:
        for change in (f"comment={comment}", "comment=a\nb", "jobname=a\nb"):
            assert stranger.run("scontrol", "update", f"jobid={slurm_id}", change).status != 0, change
        assert "deepgrid:" not in site.record(int(slurm_id))
        assert stranger.run("scontrol", "update", f"jobid={slurm_id}", "jobname=mine").status == 0
    finally:
        assert stranger.run("scancel", slurm_id).status == 0
