"""What a message of sbatch means: the error decides, and not words in the text before it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deepgrid.errors import SubmitLimit
from deepgrid.slurm.commands.complaints import (
    COMPLAINTS,
    LIMITS,
    OUTAGES,
    Kind,
    is_of_one_account,
    kind_of,
    the_complaint,
)
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.scripts import read_script
from deepgrid.slurm.submit.protocol import parse_answer

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
POLICY_SHOWN = POLICY.removeprefix(FAILED)
BANNER = "sbatch: INFO: project balance 17 h, munge timeout, try again\nsbatch: lua: Communication with us is wanted\n"

# The message of sbatch (recorded on 22.05, except where Slurm's source has the text), its kind, and what is shown.
CASES = {
    "memory": (
        "sbatch: error: Memory specification can not be satisfied\n"
        f"{FAILED}Requested node configuration is not available",
        Kind.FINAL, "Requested node configuration is not available",
    ),
    "partition": (
        f"sbatch: error: invalid partition specified: nope\n{FAILED}Invalid partition name specified",
        Kind.FINAL, "Invalid partition name specified",
    ),
    "a site's policy with the words of outages": (
        f"{BANNER}sbatch: error: Credential expired: connection refused, timeout\n{FAILED}Access/permission denied",
        Kind.FINAL, "Access/permission denied",
    ),
    "a limit by its name in a site's text": (
        f"sbatch: error: your QOSMaxSubmitJobPerUserLimit is small\n{POLICY}", Kind.FINAL, POLICY_SHOWN,
    ),
    "submitted jobs of an association": (
        f"{BANNER}sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}",
        Kind.LIMIT, f"{POLICY_SHOWN} (AssocMaxSubmitJobLimit)",
    ),
    "submitted jobs of a QOS": (
        f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}",
        Kind.LIMIT, f"{POLICY_SHOWN} (QOSMaxSubmitJobPerUserLimit)",
    ),
    "another limit that a QOS denies": (
        f"sbatch: error: QOSMaxWallDurationPerJobLimit\n{POLICY}",
        Kind.FINAL, f"{POLICY_SHOWN} (QOSMaxWallDurationPerJobLimit)",
    ),
    "all jobs of the cluster": (f"{FAILED}MaxJobCount limit reached", Kind.LIMIT, "MaxJobCount limit reached"),
    "no answer": (
        f"{FAILED}Unable to contact slurm controller (connect failure)",
        Kind.OUTAGE, "Unable to contact slurm controller (connect failure)",
    ),
    "a full disk of the controller": (
        f"{FAILED}I/O error writing script/environment to file",
        Kind.OUTAGE, "I/O error writing script/environment to file",
    ),
    "authentication": (f"{FAILED}Protocol authentication error", Kind.OUTAGE, "Protocol authentication error"),
    "an upgrade": (
        f"{FAILED}Incompatible versions of client and server code",
        Kind.OUTAGE, "Incompatible versions of client and server code",
    ),
    "nodes that are drained": (
        f"{FAILED}Required node not available (down, drained or reserved)",
        Kind.OUTAGE, "Required node not available (down, drained or reserved)",
    ),
    "shared libraries": (
        "sbatch: error while loading shared libraries: libslurmfull.so: cannot open shared object file",
        Kind.OUTAGE, "error while loading shared libraries: libslurmfull.so: cannot open shared object file",
    ),
    "configuration": (
        "sbatch: error: s_p_parse_file: cannot stat file /nope: No such file or directory\n"
        "sbatch: error: ClusterName needs to be specified\nsbatch: fatal: Unable to process configuration file",
        Kind.OUTAGE, "Unable to process configuration file",
    ),
    "no configuration source": (
        "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
        "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: Could not establish a configuration source",
        Kind.OUTAGE, "Could not establish a configuration source",
    ),
    "no sbatch": (
        "timeout: failed to run command 'sbatch': No such file or directory",
        Kind.OUTAGE, "failed to run command 'sbatch': No such file or directory",
    ),
    "an option": (
        "sbatch: unrecognized option '--nonsense'\nTry \"sbatch --help\" for more information",
        Kind.FINAL, "unrecognized option '--nonsense'",
    ),
    "a socket": (
        "sbatch: error: slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=4003: Unexpected missing socket error",
        Kind.OUTAGE, "slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=4003: Unexpected missing socket error",
    ),
    "an unknown word": (f"{FAILED}The moon is full", Kind.FINAL, "The moon is full"),
    "an older form": ("allocation failure: Invalid account", Kind.FINAL, "Invalid account"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "shown"), CASES.values(), ids=CASES.keys())
@pytest.mark.situation(
    "submission", "sbatch fails, after lines of job_submit.lua with any words",
    "its last error decides whether the job is given back, or submitted again",
)  # fmt: skip
def test_the_error_decides(text: str, kind: Kind, shown: str) -> None:
    assert (kind_of(text), the_complaint(text)) == (kind, shown)


def test_the_login_node_reads_the_same(tmp_path: Path) -> None:
    """The shell decides under the claim's lock, with the expressions of the table."""
    script = [read_script("complaint.sh"), "outages=$1 limits=$2", "shift 2"]
    script += ["for folder; do", "read_complaint 1", 'printf "%s|%s\\n" "$kind" "$message"', "done"]
    folders = [tmp_path / str(number) for number in range(len(CASES))]
    for folder, (text, *_) in zip(folders, CASES.values(), strict=True):
        folder.mkdir()
        (folder / "complaint").write_text(f"{text}\n")
    command = ["sh", "-c", "\n".join(script), "sh", OUTAGES, LIMITS, *map(str, folders)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    assert done.stdout.splitlines() == [f"{kind.name.lower()}|{shown}" for _, kind, shown in CASES.values()]


ANSWERS = {
    "7": "7",
    "7;alpha": "7",
    "Welcome to Gamma\n8": "8",
    "Welcome\n9;alpha\nBye": "9",
    "Submitted batch job 10": "10",
    "Submitted batch job 11 on cluster alpha": "11",
    "3 jobs wait": "",
    "": "",
}


@pytest.mark.situation(
    "submission", "a wrapper around sbatch prints a banner, or drops `--parsable`",
    "the id of the job is found in its answer",
)  # fmt: skip
def test_the_id_is_found_in_the_answer_of_a_wrapper() -> None:
    script = [read_script("complaint.sh"), "for answer; do", 'job_id "$answer"', 'echo "$id"', "done"]
    command = ["sh", "-c", "\n".join(script), "sh", *ANSWERS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(ANSWERS.values())


def test_no_text_stands_twice() -> None:
    texts = [text for one in COMPLAINTS for text in one.texts]
    assert len(set(texts)) == len(texts)


def test_a_limit_is_no_refusal() -> None:
    with pytest.raises(SubmitLimit, match="AssocMaxSubmitJobLimit") as full:
        parse_answer(CommandResult(0, b"limited Job violates policy (AssocMaxSubmitJobLimit)\n", b""))
    assert full.value.transient and is_of_one_account(full.value.limit)
    assert not is_of_one_account("Job violates policy (AssocGrpSubmitJobsLimit)")
    assert not is_of_one_account("Job violates policy (MaxSubmitJobsPerAccount)")
