"""A fake Slurm in one file: the programs in `fake_cluster.PROGRAMS` answer from a state file.

It runs under each of these names without any package. It answers like the real commands and prints users' texts byte
for byte. Every call is logged with the caller's user id. Commands have no effects.

A test starts it hundreds of times, so it imports nothing slow. Texts of the state are Latin-1.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Job = dict[str, Any]

FOLDER = os.path.dirname(os.path.realpath(__file__))
INVALID_ID = "slurm_load_jobs error: Invalid job id specified"
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
FLAGS = {
    "squeue": ("-h", "-a"),
    "sacct": ("-n", "-P", "-p", "-X", "-a", "-D", "--noconvert"),
}
LETTERS = {
    "A": "jobid",
    "k": "comment",
    "T": "state",
    "j": "name",
    "U": "userid",
    "a": "account",
    "Z": "workdir",
    "V": "submittime",
}


def main() -> int:
    program, argv = os.path.basename(sys.argv[0]), sys.argv[1:]
    with open(f"{FOLDER}/calls", "ab") as log:
        log.write(ascii((program, os.getuid(), argv)).encode() + b"\n")
    with open(f"{FOLDER}/state", "rb") as file:
        state = marshal.loads(file.read())  # faster than loading the file
    if complaint := state["complaints"].get(program):
        say(sys.stderr.fileno(), f"{complaint}\n")
        return 1
    match program, argv:
        case "squeue", _:
            return squeue(state["jobs"], options(program, argv))
        case "sacct", _:
            return sacct(state["jobs"], options(program, argv))
        case ("sinfo", _) | ("scontrol", ["show", "config"]) | ("sacctmgr", _):
            say(sys.stdout.fileno(), state["answers"][program])
        case "sdiag", _:
            say(sys.stdout.fileno(), "DBD Agent queue size: 0\n")
    return 0


def options(program: str, argv: list[str]) -> dict[str, str]:
    """Return the values of options by name, without flags that change nothing here."""
    found, rest = {}, iter(argv)
    for word in rest:
        if word not in FLAGS[program]:
            found[word] = next(rest)
    return found


def squeue(jobs: list[Job], asked: dict[str, str]) -> int:
    if "-j" in asked:
        jobs = [job for job in jobs if str(job["jobid"]) == asked["-j"]]
        if not jobs:
            say(sys.stderr.fileno(), f"{INVALID_ID}\n")
            return 1
    if "-t" not in asked:
        jobs = [job for job in jobs if job["state"] not in ENDED]
    lines = []
    for job in chosen(jobs, asked, "-n"):
        shown = queue_columns(job)
        if "-O" in asked:
            wanted = (column.split(":", 1) for column in asked["-O"].split(","))
            lines.append("".join(f"{shown[name]}{after}" for name, after in wanted))
        else:
            lines.append("".join(shown[LETTERS[part[0]]] + part[1:] for part in asked["-o"].split("%")[1:]))
    say(sys.stdout.fileno(), "".join(f"{line}\n" for line in lines))
    return 0


def queue_columns(job: Job) -> dict[str, str]:
    told = {name: str(value) for name, value in job.items()}
    used_s = max(0, job["end"] - job["start"]) if job["start"] and job["end"] else 0
    return told | {
        "account": job["account"] or "(null)",
        "starttime": str(job["start"] or "N/A"),
        "endtime": str(job["end"] or "N/A"),
        "timelimit": f"{job['limit']}:00" if job["limit"] < 60 else f"{job['limit'] // 60}:{job['limit'] % 60:02}:00",
        "exit_code": str(job["exit"]),
        "restartcnt": str(job["restarts"]),
        "submittime": str(job["submit"]),
        "nodelist": job["nodes"],
        "timeused": f"{used_s // 3600}:{used_s // 60 % 60:02}:{used_s % 60:02}",
        "preempttime": "N/A",
    }


def sacct(jobs: list[Job], asked: dict[str, str]) -> int:
    if "-j" in asked:
        jobs = [job for job in jobs if str(job["jobid"]) == asked["-j"]]
    last, lines = "|" if "-p" in sys.argv else "", []
    for job in chosen(jobs, asked, "--name"):
        shown = accounting_columns(job)
        lines.append("|".join(shown[name] for name in asked["-o"].split(",")) + last)
    say(sys.stdout.fileno(), "".join(f"{line}\n" for line in lines))
    return 0


def accounting_columns(job: Job) -> dict[str, str]:
    code, signal = job["exit"] >> 8, job["exit"] & 0x7F
    by = f" by {job['userid']}" if job["state"] == "CANCELLED" else ""
    return {
        "JobIDRaw": str(job["jobid"]), "UID": str(job["userid"]), "State": f"{job['state']}{by}",
        "ExitCode": f"{code}:{signal}", "Start": str(job["start"] or "Unknown"), "End": str(job["end"] or "Unknown"),
        "Submit": str(job["submit"]), "NodeList": job["nodes"] or "None assigned", "Comment": job["comment"],
        "Suspended": "00:00:00", "AllocTRES": "", "ReqTRES": "", "JobName": job["name"], "WorkDir": job["workdir"],
        "Account": job["account"], "TotalCPU": "00:00:00", "TRESUsageInTot": "", "TRESUsageOutTot": "",
    }  # fmt: skip


def chosen(jobs: list[Job], asked: dict[str, str], names: str) -> Iterator[Job]:
    """Yield the jobs of the requested users and names."""
    users = asked.get("-u", "").split(",")
    wanted = asked.get(names, "").split(",")
    for job in jobs:
        if ("-u" not in asked or str(job["userid"]) in users) and (names not in asked or job["name"] in wanted):
            yield job


def say(stream: int, text: str) -> None:
    left = text.encode("latin-1")
    while left:
        left = left[os.write(stream, left) :]


if __name__ == "__main__":
    sys.exit(main())
