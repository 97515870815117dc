"""A customer's account attacks other customers, the grid's folders and the cluster itself."""

from __future__ import annotations

import re
import subprocess

import pytest

from deepgrid.slurm.ssh.scripts import read_script
from tests.attacks.on_slurm import Claim, Site, conf_folder

SLURM = "Slurm's own privileges"
REFUSED = ".*(Invalid user id|No steps running|denied).*|"  # although the command exits with 0
COMMANDS = {
    "cancel another customer's job": ["scancel {bob}", "scancel --user={name}", "scancel --signal=STOP {bob}"],
    "change another customer's job": ["scontrol update jobid={bob} timelimit=1", "scontrol requeue {bob}",
                                      "scontrol hold {bob}", "scontrol notify {bob} hello"],
    "read another customer's script": ["scontrol write batch_script {bob} -"],
    "attach to another customer's job": ["sattach {bob}.batch", "srun --jobid={bob} --overlap true",
                                         "sbcast --jobid={bob} /etc/hostname /tmp/x"],
    "see another customer's jobs (PrivateData)": ["scontrol show job {bob}", "sacct -n -a -j {bob}",
                                                  "sstat -n -j {bob}", "squeue -h -j {bob}"],
    "become an administrator of Slurm": ["sacctmgr -i add user {me} account=root adminlevel=admin",
                                         "sacctmgr -i modify user {me} set adminlevel=operator"],
    "reserve nodes": ["scontrol create reservation user={me} starttime=now duration=60 nodes=ALL"],
    "change nodes and partitions": ["scontrol update nodename=attack-n1 state=down reason=x",
                                    "scontrol update partitionname=main state=down", "scontrol delete partition=main"],
    "stop or reconfigure the controller": ["scontrol shutdown", "scontrol reconfigure", "scontrol takeover",
                                           "scontrol setdebug debug5", "scontrol reboot attack-n1"],
    "run programs on the controller (strigger)": ["strigger --set --node --idle --program=/bin/true",
                                                  "strigger --set --jobid={mine} --fini --program=/bin/true"],
}  # fmt: skip


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(
            commands, id=what,
            marks=pytest.mark.attack(what, attacker="a job's account", gain="nothing", defence=SLURM),
        )
        for what, commands in COMMANDS.items()
    ],
)  # fmt: skip
def test_others_and_the_cluster_are_out_of_reach(site: Site, running: Claim, bobs: Claim, commands: list[str]) -> None:
    before = site.record(bobs.slurm_id)
    words = {"bob": bobs.slurm_id, "name": site.bob.name, "me": site.alice.name, "mine": running.slurm_id}
    for command in commands:
        said = site.alice.run(*command.format(**words).split(" "))
        assert said.status or re.fullmatch(REFUSED, said.text.strip(), re.DOTALL) or "--user=" in command, (
            command,
            said,
        )
        assert bobs.key.name not in said.text and "secret" not in said.text
    assert site.record(bobs.slurm_id) == before
    assert {site.state(claim.slurm_id) for claim in (running, bobs)} == {"RUNNING"}
    assert site.box.slurm("sinfo", "-h", "-o", "%a %D").split()[0] == "up"


FILES = {
    "read the output of another customer's job": [
        "cat {bobs}/output.log", "ls {bobs}", "ls {bobs}/run", "cat {bobs}/id",
    ],
    "list the claims of others": ["ls {root}/jobs", "find {root}/jobs -mindepth 1 -maxdepth 1"],
    "forge a completion record": ["touch {root}/spool/1.2.0", "ls {root}/spool", "mv {root}/spool /tmp/x"],
    "forge the supervisor's files of a claim": [
        "touch {mine}/record", "rm {mine}/tombstone", "rm -r {mine}/run", "mv {mine}/output.log {mine}/x",
        "ln -s /etc/passwd {mine}/account", "touch {mine}/limit", "mkdir {root}/jobs/evil", "cat {mine}/account",
    ],
    "change the hooks or slurm.conf": [
        "touch {conf}/job_submit.lua", "touch {conf}/evil", "tee -a {conf}/slurm.conf", "mv {conf}/jobcomp.lua /tmp/x",
        "touch {conf}/slurmctld/x", "cat {munge}",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(
            commands, id=what,
            marks=pytest.mark.attack(what, attacker="a job's account", gain="nothing", defence="owners and file modes"),
        )
        for what, commands in FILES.items()
    ],
)  # fmt: skip
def test_the_grids_files_are_out_of_reach(site: Site, running: Claim, bobs: Claim, commands: list[str]) -> None:
    conf = conf_folder(site)
    words = {
        "root": site.settings.grid_root, "bobs": site.box.folder(bobs.key), "mine": site.box.folder(running.key),
        "conf": conf, "munge": conf.parent / "munge.key",
    }  # fmt: skip
    for command in commands:
        said = site.alice.run(*command.format(**words).split(" "))
        assert said.status != 0, (command, said)


@pytest.mark.attack(
    "make the root supervisor cancel another customer's job", attacker="a customer", gain="nothing",
    defence="root acts on files with only the rights of the job's account; scancel gets the account and the id",
)  # fmt: skip
def test_root_acts_only_as_the_jobs_account(site: Site, running: Claim, bobs: Claim) -> None:
    """The test acts as if a forged id of Bob's job had passed every check."""
    script = read_script("common.sh", "as_user.sh", "account.sh") + (
        "user=$1 uid=$2 become=uid; cd /\n"
        'for command in "id -un" "id -Gn" "scancel $3" "cat $4"; do as_user 20 $command; printf "%s" "$said"; done\n'
        'end_jobs "$3"\n'
    )
    env = {"PATH": "/usr/bin:/bin", **site.box.site.environment("attack")}
    victim = (str(bobs.slurm_id), str(site.box.folder(bobs.key) / "output.log"))
    done = subprocess.run(
        ["sh", "-c", script, "sh", site.alice.name, str(site.alice.uid), *victim],
        env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    name, group, *refusals = done.stdout.splitlines()
    assert (name, group) == (site.alice.name, site.alice.name), done
    assert len(refusals) == 2 and all("ermission denied" in refusal for refusal in refusals), done
    assert site.state(bobs.slurm_id) == "RUNNING"
    assert site.state(running.slurm_id) == "RUNNING"
