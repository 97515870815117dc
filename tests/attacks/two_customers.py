"""Two clusters of one machine and two customers with accounts on both."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam

from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.slurm import SlurmSite
from tests.attacks.local_account import Attacker
from tests.slurm.support import Box
from tests.waiting import wait_until

WITHIN_S = 60.0
STRANGER = "0x" + "5" * 40


@dataclass
class Scene:
    """Two clusters, alpha and beta, and two customers with accounts on both."""

    site: SlurmSite
    table: ProcessTable
    alice: str
    bob: str

    def box(self, cluster: str) -> Box:
        return Box(self.site, self.table, cluster)

    def account(self, cluster: str, wallet: str) -> Attacker:
        name = self.site.admit(cluster, wallet)
        assert name
        return Attacker(name, getpwnam(name).pw_uid)

    def submit(self, cluster: str, who: Attacker, script: str, *options: str) -> int:
        """Submit a job for a customer, as the supervisor does. Returns the job's id."""
        uid = [f"--uid={who.uid}", f"--gid={who.uid}"] if who.uid == getpwnam(who.name).pw_gid else []
        command = ["sbatch", "--parsable", *uid, "--chdir=/tmp", "--output=/dev/null", *options, f"--wrap={script}"]
        return int(self.box(cluster).slurm(*command))

    def state(self, cluster: str, job: int) -> str:
        return self.box(cluster).slurm("squeue", "-h", "-a", "-t", "all", "-j", str(job), "-o", "%T").strip()

    def until_state(self, cluster: str, job: int, *states: str) -> None:
        wait_until(lambda: self.state(cluster, job) in states, lambda: f"job {job} is {self.state(cluster, job)}")


def commands_of(uid: int) -> list[str]:
    """Return the command lines of the live processes of an account."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, StopIteration):
            status = (folder / "status").read_text().splitlines()
            mine = next(line for line in status if line.startswith("Uid:")).split()[1] == str(uid)
            dead = next(line for line in status if line.startswith("State:")).split()[1] in "ZX"
            if mine and not dead:
                found.append((folder / "cmdline").read_text().replace("\0", " ").strip())
    return found
