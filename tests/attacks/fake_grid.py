"""A grid on the fake Slurm: claims in every state among jobs of hostile users."""

from __future__ import annotations

import os
import pwd
import time
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.attacks.fake_cluster import FakeSlurm, Job, LocalLogin, slurm_job
from tests.attacks.fake_slurm import ENDED
from tests.attacks.random_text import LINE_ENDS, Texts

CONTRACT = "0x" + "c0ffee00" * 5
BATCH = "deepgrid-selftest"
STRANGERS = (1, 12345, 65534)
START = 1_795_000_000


def accounts() -> list[str]:
    """Three accounts of customers. Without root they are all the test's own account."""
    me = pwd.getpwuid(os.getuid()).pw_name
    return ["games", "news", "irc"] if os.getuid() == 0 else [me] * 3


@dataclass(frozen=True)
class Claim:
    """A claim and its Slurm job. `known`: its id is on record; `tried`: the time of the first sbatch."""

    key: JobKey
    account: str
    job: Job | None = None
    known: bool = True
    tried_s_ago: int = 1000
    refused: bool = False

    @property
    def user(self) -> int:
        return pwd.getpwnam(self.account).pw_uid


@dataclass
class FakeGrid:
    """The grid's folders and the fake Slurm below `folder`, which other accounts may enter."""

    folder: Path
    seed: int
    hostile: int
    claims: dict[str, Claim] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("grid/jobs", "grid/spool", "storage"):
            (self.folder / name).mkdir(parents=True)
        self.slurm = FakeSlurm(self.folder)
        self.login = LocalLogin(self.folder)
        self._make_claims()
        known = [(claim.key, claim.job["jobid"] if claim.job else 7, claim.user) for claim in self.claims.values()]
        self.texts = Texts(self.seed, known, self.slurm.intruder)
        # A job can rename itself where no hook forbids it. Its id is on record.
        (renamed,) = (job for job in self.jobs if job["name"] == self.claims["waiting"].key.name)
        renamed |= {"name": self.texts.text(), "comment": self.texts.text()}
        self.jobs.extend(self._hostile_job(2000 + number) for number in range(self.hostile))
        self.texts.rng.shuffle(self.jobs)
        self.write_state()
        self._write_records()

    @property
    def jobs(self) -> list[Job]:
        return self.slurm.jobs

    @property
    def settings(self) -> LoginSettings:
        nowhere = Path("/dev/null")
        return LoginSettings(
            "localhost", 22, "nobody", nowhere, nowhere, str(self.folder / "grid"), job_account=accounts()[0]
        )

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.login, self.settings)

    @property
    def keys(self) -> list[JobKey]:
        return [claim.key for claim in self.claims.values()]

    def write_state(self) -> None:
        """Give the fake Slurm these jobs, and a new configuration of random text."""
        config = "".join(
            f"{name:<23} = {self.texts.text().translate(dict.fromkeys((10, 13), 32))}\n"
            for name in ("SLURM_CONF", "JobCompLoc", "MinJobAge", "SLURM_VERSION", "PrivateData", "TaskPlugin")
        )
        self.slurm.answers = {
            "scontrol": f"JobCompType = jobcomp/lua\nSlurmUser = root(0)\n{config}",
            "sinfo": f"n1|2|4000|(null)|idle|up\n{self.texts.text()}\n",
            "sacctmgr": "Administrator\n",
        }
        self.slurm.write()

    def _make_claims(self) -> None:
        one, two, three = accounts()
        self._claim("running", one, "RUNNING", nodes="n1", start=START)
        self._claim("waiting", two, "PENDING")
        self._claim("ended", one, "COMPLETED", nodes="n1", start=START, end=START + 90)
        self._claim("failed", two, "FAILED", nodes="n2", start=START, end=START + 50, exit=768)
        self._claim("in doubt", three, "RUNNING", nodes="n2", start=START, known=False)
        self._claim("in doubt, ended", three, "FAILED", nodes="n2", start=START, end=START + 9, known=False)
        self.claims["in doubt, lost"] = Claim(self._new_key(), three, known=False, tried_s_ago=30)
        self.claims["refused"] = Claim(self._new_key(), one, known=False, refused=True)
        # A controller that lost its state has assigned its id to another user's job.
        lost = slurm_job(1900, STRANGERS[0], "name", "comment", "RUNNING", nodes="n1", start=START)
        self.jobs.append(lost)
        self.claims["lost"] = Claim(self._new_key(), one, lost)
        self.jobs.append(slurm_job(1901, pwd.getpwnam(one).pw_uid, BATCH, "", "RUNNING", nodes="n1", start=START))

    def _new_key(self) -> JobKey:
        return JobKey(31337, CONTRACT, 500 + len(self.claims), START - 100)

    def _claim(self, name: str, account: str, state: str, *, known: bool = True, **columns: object) -> None:
        key, number = self._new_key(), 1000 + len(self.claims)
        job = slurm_job(number, pwd.getpwnam(account).pw_uid, key.name, key.comment, state, **columns)
        self.jobs.append(job)
        self.claims[name] = Claim(key, account, job, known)

    def _hostile_job(self, slurm_id: int) -> Job:
        rng, text = self.texts.rng, self.texts.text
        claim = rng.choice(list(self.claims.values()))
        user = rng.choice((*STRANGERS, claim.user, *(pwd.getpwnam(name).pw_uid for name in accounts())))
        name = claim.key.name if rng.random() < 0.1 else text()
        comment = rng.choice((text(), text(), f"deepgrid:{text()}", self._almost(claim.key.comment)))
        if user != claim.user:
            comment = rng.choice((comment, claim.key.comment))
        if (name, comment, user) == (claim.key.name, claim.key.comment, claim.user):
            name = "not somebody else's"  # a job with all three would be the claim's own
        state = rng.choice(("PENDING", "RUNNING", *ENDED))
        started = START + rng.randrange(1000) if state != "PENDING" else None
        ended = started + rng.randrange(1000) if started and state in ENDED else None
        return slurm_job(
            slurm_id, user, name, comment, state, start=started, end=ended, nodes="n1" if started else "",
            exit=rng.randrange(65536), account=text(), workdir=f"/{text()}",
            reason=text().replace("\n", " "),  # the text of slurmctld itself
        )  # fmt: skip

    def _almost(self, comment: str) -> str:
        end = self.texts.rng.choice(LINE_ENDS)
        return self.texts.rng.choice((
            f"{comment}{end}", f"{end}{comment}", f"x{end}{comment}{end}y", f"{comment} ", f"{comment}|", f"{comment}0",
            f"{comment}{end}{comment}", f"deepgrid:{end}comment={comment}",
        ))  # fmt: skip

    def _write_records(self) -> None:
        """Write the files of the submissions and the completion hook."""
        grid, ledger = self.folder / "grid", []
        for claim in self.claims.values():
            place = grid / "jobs" / claim.key.folder
            (place / "run").mkdir(parents=True)
            (place / "account").write_text(f"{claim.account} {claim.user}\n")
            (place / "intent").write_text(f"{int(time.time()) - claim.tried_s_ago}\n")
            if claim.refused:
                (place / "refused").write_text("no\n")
            if claim.known and claim.job:
                (place / "id").write_text(f"{claim.job['jobid']} {claim.job['submit']}\n")
                ledger.append(f"{claim.job['jobid']} {claim.key.folder} {claim.user} {claim.job['submit']}\n")
        (grid / "ledger").write_text("".join(ledger))
        for job in self.jobs:
            failed = self.claims["failed"].job, self.claims["in doubt, ended"].job  # these ends are only in accounting
            if job["state"] in ENDED and job["comment"].startswith("deepgrid:") and job not in failed:
                self._write_completion(job)

    def try_again(self, name: str, *, s_ago: int) -> None:
        """Make the last attempt to submit this claim this long ago."""
        intent = self.folder / "grid" / "jobs" / self.claims[name].key.folder / "intent"
        intent.write_text(f"{int(time.time()) - s_ago}\n")

    def _write_completion(self, job: Job) -> None:
        """Replace control characters by spaces, as the completion hook does."""
        fields = {
            "job_id": job["jobid"], "name": job["name"], "user_id": job["userid"],
            "job_state": {"COMPLETED": 3, "CANCELLED": 4, "FAILED": 5, "TIMEOUT": 6, "NODE_FAIL": 7}[job["state"]],
            "exit_code": job["exit"], "start_time": job["start"], "end_time": job["end"], "nodes": job["nodes"],
            "restart_cnt": 0, "comment": job["comment"],
        }  # fmt: skip
        controls = dict.fromkeys((*range(32), 127), " ")
        text = "".join(f"{name}={str(value).translate(controls)}\n" for name, value in fields.items())
        file = self.folder / "grid" / "spool" / f"{job['jobid']}.{job['end']}"
        file.write_bytes(text.encode(errors="surrogateescape"))
