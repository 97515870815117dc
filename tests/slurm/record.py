"""Records what a version of Slurm prints: `tools/with-slurm SUITE .venv/bin/python -m tests.slurm.record`.

Without `tools/with-slurm` it records the machine's own version. A cluster runs a job of each kind. Then the commands of
`deepgrid.slurm.commands` run, and their output is written to `tests/slurm/data/recorded/VERSION`. `jobs.txt` names
the kind of each job. The tests of the parsers read all versions (`test_recorded.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.commands.scontrol import Scontrol
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.commands.step_uses import Sstat
from deployments.onemachine.slurm import ClusterSpec
from tests.slurm.support import Box, running_box

RECORDED = Path(__file__).parent / "data" / "recorded"
WITHIN_S = 200.0
NODES = 9
# Nodes that have no slurmd. The cloud nodes are off, and the others never registered.
MORE_NODES = """
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=36000
ResumeTimeout=3600
MaxMemPerCPU=900
NodeName=cloud[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[45001-45002] CPUs=4 RealMemory=1000 State=CLOUD
NodeName=later NodeHostname={host} NodeAddr=127.0.0.1 Port=45003 CPUs=4 RealMemory=1000 State=FUTURE
NodeName=core NodeHostname={host} NodeAddr=127.0.0.1 Port=45004 CPUs=16 CoresPerSocket=16 RealMemory=8000 \
  CoreSpecCount=2 MemSpecLimit=1000
NodeName=slices NodeHostname={host} NodeAddr=127.0.0.1 Port=45005 CPUs=16 RealMemory=8000 \
  Gres=gpu:a100_3g.20gb:2,gpu:a100_1g.5gb:14,gpu:v100:1
PartitionName=cloud Nodes=cloud[1-2] MaxTime=INFINITE State=UP MaxMemPerCPU=200
PartitionName=odd Nodes=core,slices MaxTime=INFINITE State=UP
PartitionName=closed Nodes={cluster}-n1 MaxTime=INFINITE State=DOWN
"""
# Kinds of jobs, with the options of sbatch and the payload.
KINDS: dict[str, tuple[Sequence[str], str]] = {
    "exit 0": ((), "exit 0"),
    "exit 3": ((), "exit 3"),
    "exit 125": ((), "exit 125"),
    "exit 128": ((), "exit 128"),
    "exit 137": ((), "exit 137"),
    "exit 255": ((), "exit 255"),
    "killed": ((), "kill -9 $$"),
    "terminated": ((), "kill -15 $$"),
    "failed launch": (("--output=/nowhere/out",), "true"),
    "time limit": (("--time=1",), "sleep 600"),
    "cancelled by root": ((), "sleep 600"),
    "cancelled while waiting": (("--begin=now+1hour",), "true"),
    "on all nodes": (("--begin=now+10", "--time=1", "-N", "{nodes}"), "true"),
    "node failure": (("-w", "{cluster}-n9"), "sleep 600"),
    "held": (("-H",), "true"),
    "later": (("--begin=now+1hour",), "true"),
    "running": ((), "sleep 600"),
    "suspended": ((), "sleep 600"),
    "requeued": (("--requeue",), "sleep 600"),
    "resized": (("-N", "2"), "sleep 600"),
}
HELD_MB = 100
# A step holds memory and a CPU, in addition to the batch script. Its name is 0.
TWO_STEPS = f"""srun -n1 --overlap python3 -c '
import time
block = bytearray({HELD_MB} << 20)
block[::4096] = bytes([1]) * len(block[::4096])
while time.process_time() < 7: pass
time.sleep(600)'"""
REFUSED: dict[str, Sequence[str]] = {
    "too much memory": ("--mem=9999G",),
    "too many CPUs": ("-c", "999"),
    "no such partition": ("-p", "nosuch"),
    "no such account": ("-A", "nosuch"),
    "partition is down": ("-p", "closed"),
    "no such GPU": ("--gpus=nosuch:1",),
    "no such feature": ("-C", "nosuch"),
}


def main() -> None:
    """Record the version of Slurm that is on the PATH."""
    with running_box(
        ClusterSpec("rec", nodes=NODES, cpus_per_node=8, gpus_per_node=1, guard=False, private=False)
    ) as box:
        _add_nodes(box)
        before = int(time.time())
        ids = {kind: _submit(box, kind) for kind in KINDS}
        _treat(box, ids)
        _treat_nodes(box)
        version = re.sub(r"^\S+ ", "", box.slurm("sbatch", "--version").strip())
        folder = RECORDED / version
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "squeue": _run(box, Squeue(ended=True).argv()),
            "sacct": _run(box, Sacct(before - 60).argv()),
            "completions": _completions(box),
            "nodes": _run(box, Scontrol("main").argv()),
            "refusals": _refusals(box),
            "sstat": _running_steps(box),
            "jobs": "".join(f"{slurm_id} {kind}\n" for kind, slurm_id in ids.items()),
        }
        for name, text in texts.items():
            (folder / f"{name}.txt").write_text(_plain(text, box))
        print(f"recorded Slurm {version}: {', '.join(texts)}")


def _add_nodes(box: Box) -> None:
    conf = Path(box.site.environment(box.name)["SLURM_CONF"])
    host = re.search(r"SlurmctldHost=(\S+)\(", conf.read_text())
    assert host
    conf.write_text(conf.read_text() + MORE_NODES.format(host=host[1], cluster=box.name))
    controller = next(daemon for daemon in box.site.daemons() if daemon.name == f"{box.name}-slurmctld")
    box.table.stop(controller.name)
    box.table.start(controller)
    box.table.wait_ready(controller)
    _wait(lambda: "unk" not in box.slurm("sinfo", "-h", "-N", "-n", f"{box.name}-n[1-{NODES}]", "-o", "%T"))


def _submit(box: Box, kind: str) -> int:
    options, payload = KINDS[kind]
    named = [option.format(cluster=box.name, nodes=NODES) for option in options]
    account = box.settings.job_account or box.settings.user
    command = ["sbatch", "--parsable", "--no-requeue", f"--uid={account}", "--time=10", "--mem=100"]
    command += ["--comment=deepgrid:recorded"]  # only such jobs have records of the completion hook
    return int(box.slurm(*command, "--output=/dev/null", "--chdir=/tmp", f"--wrap={payload}", *named))


def _treat(box: Box, ids: dict[str, int]) -> None:
    """Do to the jobs what their kind says, and wait for their ends."""

    def state(kind: str) -> str:
        return box.slurm("squeue", "-h", "-t", "all", "-j", str(ids[kind]), "-o", "%T").strip()

    running = ("cancelled by root", "node failure", "running", "suspended", "requeued", "resized")
    _wait(lambda: {state(kind) for kind in running} == {"RUNNING"})
    box.slurm("scancel", str(ids["cancelled by root"]), str(ids["cancelled while waiting"]))
    box.slurm("scontrol", "update", f"nodename={box.name}-n9", "state=down", "reason=power supply | of rack 3")
    box.slurm("scontrol", "suspend", str(ids["suspended"]))
    box.slurm("scontrol", "requeue", str(ids["requeued"]))
    box.slurm("scontrol", "update", f"jobid={ids['resized']}", "numnodes=1")
    ends = [kind for kind in ids if kind not in ("held", "later", "running", "suspended", "requeued", "resized")]
    final = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"}
    _wait(lambda: {state(kind) for kind in ends} <= final)
    time.sleep(3)  # accounting follows


def _treat_nodes(box: Box) -> None:
    def update(node: int, state: str, reason: str) -> None:
        box.slurm("scontrol", "update", f"nodename={box.name}-n{node}", f"state={state}", f"reason={reason}")

    update(3, "drain", "State=IDLE, says the administrator")
    update(4, "fail", "memory errors")
    update(5, "drain", "maintenance")
    box.slurm("scontrol", "update", f"nodename={box.name}-n6", "state=power_down")
    box.slurm(
        "scontrol", "create", "reservation", "starttime=now", "duration=60", "flags=maint,ignore_jobs",
        f"nodes={box.name}-n7", "users=root",
    )  # fmt: skip
    box.slurm(
        "scontrol", "create", "reservation", "starttime=now", "duration=60", "flags=ignore_jobs",
        f"nodes={box.name}-n8", "corecnt=3", "users=root",
    )  # fmt: skip
    time.sleep(5)


def _completions(box: Box) -> str:
    spool = Path(box.settings.grid_root) / "spool"
    return "".join(f"{file.read_text()}\n" for file in sorted(spool.glob("[0-9]*")))


def _running_steps(box: Box) -> str:
    """Return what a running job with two steps uses, and one that does not run."""
    account = box.settings.job_account or box.settings.user
    command = ["sbatch", "--parsable", f"--uid={account}", "--time=10", "--mem=400", "-n", "2", "--output=/dev/null"]
    ids = [int(box.slurm(*command, "--chdir=/tmp", f"--wrap={TWO_STEPS}", *held)) for held in ((), ("-H",))]

    def rows() -> str:
        variables = {**os.environ, **box.site.environment(box.name)}
        done = subprocess.run(Sstat(ids).argv(), env=variables, capture_output=True, text=True, check=False)
        return done.stdout  # the status is another one on each version

    def is_sampled() -> bool:
        step = Sstat.parse(rows()).get(ids[0], {}).get("0")
        return step is not None and step.cpu_ms >= 5000 and (step.memory or 0) > HELD_MB << 20

    _wait(is_sampled)
    return rows()


def _refusals(box: Box) -> str:
    """Return sbatch's messages, one line each: the kind, and the message with its lines joined by ` / `."""
    lines = []
    for kind, options in REFUSED.items():
        done = subprocess.run(
            ["sbatch", "--parsable", "--wrap=true", "--output=/dev/null", *options],
            env={**os.environ, **box.site.environment(box.name)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines.append(f"{kind}|{done.returncode}|{' / '.join(done.stderr.strip().splitlines())}\n")
    return "".join(lines)


def _run(box: Box, argv: Sequence[str]) -> str:
    return box.slurm(*argv)


def _plain(text: str, box: Box) -> str:
    """Return the text without what is of this machine only."""
    text = text.replace(str(box.site.state), "/site")
    text = re.sub(r"OS=Linux \S+ (.*?) {2}", "OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC  ", text)
    return re.sub(r"NodeHostName=\S+", "NodeHostName=host", text)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "the jobs or nodes are not as wanted"
        time.sleep(0.5)


if __name__ == "__main__":
    main()
