"""Seeded sequences of everything that a job's account can call or disturb. A seed always gives one sequence.

A step is a piece of bash that runs in the job, or as its account on the login node. Both know the job's ID, FOLDER,
NAME and COMMENT, and another customer's job as VICTIM (its id), VICTIM_FOLDER and VICTIM_COMMENT.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.attacks import random_saboteur as saboteur

SHORTEST_S, LONGEST_S = 5, 100
QUIET_EVERY = 6  # one neighbour that only does its work per this many sequences

# Waits without a child process, so that no signal to the shell leaves one behind.
NAP = "exec 3<> <(:); nap() { local until=$((SECONDS + $1)); while ((SECONDS < until)); do read -r -t 1 -u 3; done; }\n"

FIELDS = {
    "requeue": ("0", "1"), "numnodes": ("1", "2", "0"), "numcpus": ("1", "4"), "numtasks": ("1", "9"),
    "timelimit": ("1", "2", "+60", "-1", "unlimited", "0"), "jobname": ("x", "$NAME", "$'a\\nb'"),
    "comment": ("x", "$COMMENT", "$VICTIM_COMMENT", "$'a\\n'$VICTIM", "''"), "nice": ("1000", "-10"),
    "priority": ("0", "1", "99999"), "starttime": ("now+1hour", "now", "2020-01-01"),
    "deadline": ("now+1minute", "now"), "eligibletime": ("now+1hour",),
    "dependency": ("after:$VICTIM", "afterok:$ID", "singleton", "expand:$VICTIM", "''"),
    "partition": ("none", "main"), "qos": ("normal", "none"), "account": ("root", "x"), "features": ("none",),
    "excnodelist": ("ALL",), "reqnodelist": ("none",), "nodelist": ("none",), "minmemorycpu": ("1", "999999"),
    "gres": ("gpu:1",), "userid": ("0",), "oversubscribe": ("yes",), "reservationname": ("x",), "wckey": ("x",),
    "stdout": ("$VICTIM_FOLDER/output.log", "/dev/null"), "workdir": ("/",), "admincomment": ("x",),
    "mailuser": ("x",), "burstbuffer": ("x",), "arraytaskthrottle": ("1",), "clusters": ("x",), "extra": ("x",),
    "sitefactor": ("5",), "threadspec": ("1",), "delayboot": ("5",), "contiguous": ("yes",), "switches": ("1",),
}  # fmt: skip
CODES = (
    "0",
    "1",
    "9",
    "15",
    "0x7F0B",
    "0x7F00",
    "0x7d00",
    "0x0f7f",
    "0xfffffffe",
    "0xffffffff",
    "0xff",
    "0x0b0b",
    "127",
)
SIGNALS = ("TERM", "KILL", "INT", "STOP", "CONT", "USR1", "SEGV", "HUP")
NEW_JOB = (
    "sbatch -H", "sbatch --begin=now+1hour", "sbatch --dependency=expand:$ID", "sbatch --dependency=afterany:$ID",
    "sbatch --array=0-3 -H", "sbatch --requeue -H", "sbatch --uid=0 -H", "sbatch",
)  # fmt: skip
NAMES = (
    "$NAME",
    "x",
    "$'x\\n'$ID'|0|PENDING||'",
    "$'\\n'$VICTIM",
    "$'\\001\\033[2J'",
    "'$(touch /tmp/x)'",
    "--user=root",
)
COMMENTS = ("$COMMENT", "$COMMENT$'\\n'$VICTIM", "$'deepgrid:\\n--user=root'", "$VICTIM_COMMENT", "x", "''")

INSIDE = (
    "touch unstarted", "mkdir unstarted", "ln -s ../tombstone unstarted", "ln -s / unstarted",
    "mkfifo unstarted", "chmod 000 .", "chmod 777 .", "rm -rf ./* .[!.]*", ": > $FOLDER/output.log",
    "rm -f $FOLDER/output.log", "head -c 200000 /dev/zero", "echo deepgrid: cancelled before it started >&2",
    "touch $FOLDER/tombstone", "mkdir $FOLDER/reissued", "srun -n1 --overlap true", "srun -N1 -n1 --exclusive true",
    "unset SLURM_JOB_ID; srun -n1 true", "salloc -n1 true", "trap '' TERM INT HUP USR1", "trap 'exit 125' TERM",
    "trap 'exit 0' TERM", "trap - TERM INT", "kill -STOP $PPID", "kill -9 $PPID", "renice 19 $$",
    "sbcast -f /etc/hostname ./hosts", "ulimit -c 0", "exec 1>&-", "exec 1>/dev/null",
)  # fmt: skip
ANYWHERE = (
    "scontrol requeue $ID", "scontrol update jobid=$ID requeue=1; scontrol requeue $ID", "scontrol requeuehold $ID",
    "scontrol update jobid=$ID requeue=1; scontrol requeuehold $ID", "scontrol hold $ID", "scontrol uhold $ID",
    "scontrol release $ID", "scontrol suspend $ID", "scontrol resume $ID", "scontrol top $ID", "scontrol notify $ID x",
    "request requeue $ID 0x400", "request requeue $ID 0", "request suspend $ID", "request resume $ID",
    "request kill_job_step $ID 0xfffffffb 9", "request terminate_job_step $ID 0xfffffffb", "request kill_job $ID 9 0",
    "sacctmgr -i modify job where jobid=$ID set comment=x", "sacctmgr -i modify job where jobid=$ID set newcomment=y",
    "sacctmgr -i modify job where jobid=$ID set derivedexitcode=0", "sacctmgr -i delete user root",
    "sacctmgr -i add account evil", "strigger --set --jobid=$ID --fini --program=/bin/true",
    "strigger --clear --jobid=$ID",
    "scontrol update nodename=ALL state=down reason=x", "scontrol update partitionname=main state=down",
    "scontrol reconfigure", "scontrol shutdown", "scontrol setdebug quiet", "scontrol takeover",
    "scontrol create reservation starttime=now duration=60 nodes=ALL users=$USER", "scontrol reboot ALL",
    "sattach $ID.0", "sattach $VICTIM.batch", "scrontab -l", "squeue -a", "sacct -a", "sdiag -r", "sprio",
    "scancel $VICTIM", "scancel --user=root", "scancel -b -s KILL $VICTIM", "request complete_job $VICTIM 0",
    "request complete_job $VICTIM 0x7F0B", "scontrol requeue $VICTIM", "scontrol update jobid=$VICTIM timelimit=1",
    "scontrol update jobid=$VICTIM requeue=1", "scontrol hold $VICTIM", "srun --jobid=$VICTIM --overlap true",
    "rm -rf $VICTIM_FOLDER", "rm -f $VICTIM_FOLDER/run/unstarted", "echo x >> $VICTIM_FOLDER/output.log",
    "touch $VICTIM_FOLDER/tombstone", "sbcast -j $VICTIM -f /etc/hostname /tmp/x",
    "sacctmgr -i modify job where jobid=$VICTIM set comment=x", "echo 1 > $FOLDER/id", "echo 1 > $FOLDER/../../ledger",
    "ln -s /etc $FOLDER/tombstone", "touch $FOLDER/run/unstarted", "rm -f $FOLDER/run/unstarted",
)  # fmt: skip
# These outlive the job on clusters that do not clean up after it.
DAEMONS = (
    "setsid -f sleep 150",
    "(trap '' HUP TERM; sleep 150) & disown",
    "setsid setsid -f bash -c 'sleep 150; true'",
)
ENDINGS = (
    "exit 0", "exit 7", "exit 125", "exit 127", "kill -9 $$", "kill -TERM $$", "kill -STOP $$; nap 5", "exit 255",
    "touch unstarted; exit 125", "scancel $ID; nap 9", "scancel -b -s KILL $ID; nap 9", "nap 60",
    "scontrol update jobid=$ID requeue=1; scontrol requeue $ID; nap 20",
    "touch unstarted; scontrol update jobid=$ID requeue=1; scontrol requeue $ID; nap 20",
    "scontrol update jobid=$ID requeue=1; scontrol requeuehold $ID; nap 20",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A piece of bash that runs `at_s` seconds after the start."""

    at_s: int
    text: str


@dataclass(frozen=True)
class Sequence:
    """The actions of one account. The customer may cancel the job or top it up while it runs."""

    seed: int
    length_s: int
    minutes: int
    inside: tuple[Step, ...] = ()
    outside: tuple[Step, ...] = ()
    early: tuple[str, ...] = ()
    ending: str = "exit 7"
    cancelled_at_s: int | None = None
    topped_up_at_s: int | None = None
    quiet: bool = False

    @property
    def body(self) -> str:
        """The payload: its steps with waits between them, then its end. A step that hangs is abandoned."""
        lines, now = [NAP], 0
        for step in self.inside:
            lines.append(f"nap {step.at_s - now}; {step.text}")
            now = step.at_s
        lines.append(f"nap {self.length_s - now}; {'echo done; ' if self.quiet else ''}{self.ending}")
        return "\n".join(lines)


def sequence(seed: int, *, daemons: bool = False) -> Sequence:
    """Return the sequence of a seed. `daemons` is whether it may start processes that outlive the job."""
    chance = random.Random(seed)
    length_s = chance.randint(SHORTEST_S, LONGEST_S)
    if chance.random() < 0.6:  # stolen time shows only after a minute
        length_s = chance.randint(62, LONGEST_S)
    if seed % QUIET_EVERY == 0:
        return Sequence(seed, length_s, minutes=5, quiet=True)
    last_s = length_s - 1
    sabotages = chance.random() < 0.7
    pieces: list[Callable[[random.Random], str]] = [_update, _anywhere, _signal, _complete, _new_job]
    within = [*pieces[:2], _inside, _inside, _new_job, *[saboteur.move_in_the_job] * (5 * sabotages)]
    pieces += [saboteur.move] * (5 * sabotages)
    inside = [chance.choice(within)(chance) for _ in range(chance.randint(0, 6))]
    if daemons and chance.random() < 0.2:
        inside.append(chance.choice(DAEMONS))
    outside = [chance.choice(pieces)(chance) for _ in range(chance.randint(0, 6))]
    # Steps that end the job mostly come late. Otherwise the sequences would be short.
    at = {text: chance.randint(2 * last_s // 3, last_s) for text in (*inside, *outside)}
    at |= {text: chance.randint(1, last_s) for text in at if chance.random() < 0.5 and not _is_deadly(text)}
    ending = chance.choice([*ENDINGS, f"request complete_job $ID {chance.choice(CODES)}; nap 20"])
    early: tuple[str, ...] = ()
    if sabotages:
        ending = chance.choice((ending, *saboteur.ENDINGS))
        early = tuple(chance.choice(saboteur.EARLY) for _ in range(chance.choice((0, 0, 1, 2))))
    return Sequence(
        seed, length_s, chance.choice((1, 2, 2, 3, 5)), _steps(inside, at), _steps(outside, at), early, ending,
        cancelled_at_s=chance.randint(1, last_s) if chance.random() < (0.5 if sabotages else 0.15) else None,
        topped_up_at_s=chance.randint(1, last_s) if chance.random() < 0.15 else None,
    )  # fmt: skip


def _steps(texts: list[str], at: dict[str, int]) -> tuple[Step, ...]:
    return tuple(sorted((Step(at[text], text) for text in texts), key=lambda step: step.at_s))


def _is_deadly(text: str) -> bool:
    return any(
        word in text for word in ("complete_job $ID", "requeue $ID", "requeuehold $ID", "scancel", "kill", "KILL")
    )


def _update(chance: random.Random) -> str:
    field = chance.choice(sorted(FIELDS))
    return f"scontrol update jobid=$ID {field}={chance.choice(FIELDS[field])}"


def _anywhere(chance: random.Random) -> str:
    return chance.choice(ANYWHERE)


def _inside(chance: random.Random) -> str:
    return chance.choice(INSIDE)


def _signal(chance: random.Random) -> str:
    how = chance.choice(("", "--batch", "--full", "--hurry", "--state=running", "--state=pending"))
    signal = f"-s {chance.choice(SIGNALS)}" if chance.random() < 0.8 else ""
    return f"scancel {how} {signal} $ID"


def _complete(chance: random.Random) -> str:
    return f"request complete_job $ID {chance.choice(CODES)}"


def _new_job(chance: random.Random) -> str:
    name, comment = chance.choice(NAMES), chance.choice(COMMENTS)
    return f"{chance.choice(NEW_JOB)} --job-name={name} --comment={comment} --wrap=true"
