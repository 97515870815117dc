"""Reads the exit codes that Slurm prints. All differences between versions of Slurm are known here only.

* The controller (`squeue`) prints a wait status on 22.05: `768` for exit code 3, `9` for signal 9. On 24.11 and later
  it prints a pair of code and signal: `3:0`, `0:9`.
* A failed launch has an error number of Slurm, such as `4021`. A pair shows its last bits only: `0:53`.
* The completion hook gets wait statuses on all.
* Accounting (`sacct`) prints pairs on all. Before 26.05, codes from 128 are 128 less: `127:0` for exit code 255.
* A job whose node failed has 0 on 22.05. Later, the three sources have `0:1`, `1` and `1:0`.
* A job that is preempted with a grace time and ends in it is `FAILED` on 22.05, and `PREEMPTED` on 24.11.
* 22.05 hides powered-down cloud nodes, unless `PrivateData` has `cloud`.
* On 26.05, the account of a job may suspend and resume it. Before, only operators could.
* From 24.11 on, `--export=ALL,NAME=VALUE` reads the environment of the account's login shell, and an account without a
  usable shell gets no job. The node cancels such a job, as root.
"""

from __future__ import annotations

import re

# Each has recorded output in tests/slurm/data/recorded.
OWNERS_SUSPEND_FROM = (25, 5)  # seen on 26.05, denied by 24.11; versions between were not tried
TESTED_VERSIONS = ((22, 5), (24, 11), (26, 5))
_WAIT_STATUS = re.compile(r"([0-9]{1,10})(\.0*)?")  # Lua prints whole numbers as 768.0 in some builds
_PAIR = re.compile(r"([0-9]{1,5}):([0-9]{1,5})")
_FAILED_NODE = {"NODE_FAIL", "BOOT_FAIL"}  # the job itself has no exit code
# Slurm's error numbers of launches begin at 4000. In a pair, the last seven bits of one look like a signal.
_LOWEST_ERROR = 4000 & 0x7F


def wait_status(code: int, signal: int) -> int:
    """Return the wait status that the chain stores as exit status: exit code 3 -> 768, signal 9 -> 9."""
    return signal if signal else code << 8


def exit_of(text: str, state: str) -> tuple[int, str]:
    """Exit status and reason of a job in `state`, from the text of the controller or of the completion hook.

    Slurm's own reason is of no use. 22.05 calls any signal a failed launch, and 24.11 calls a failed launch a signal.
    """
    found = _WAIT_STATUS.fullmatch(text)
    if found:
        code, signal = int(found[1]) >> 8 & 0xFF, int(found[1]) & 0x7F
        # A process ends with a code or a signal. Both together are an error number of Slurm.
        failed_launch = bool(code and signal)
    else:
        code, signal = _pair(text) or (0, 0)
        failed_launch = signal >= _LOWEST_ERROR  # real-time signals look the same, but they rarely end a program
    if state in _FAILED_NODE:
        return 0, ""
    return wait_status(code, signal), "JobLaunchFailure" if failed_launch else ""


def accounted_exit(text: str, state: str) -> int:
    """Exit status of a job in `state`, from the text of accounting.

    Accounting prints 128 less for exit codes from 128. Only 128 itself is certain: no job fails with exit code 0.
    """
    found = _pair(text)
    if found is None or state in _FAILED_NODE:
        return 0
    return wait_status(128, 0) if found == (0, 0) and state == "FAILED" else wait_status(*found)


def _pair(text: str) -> tuple[int, int] | None:
    """Return code and signal of `3:0`; None when it is something else."""
    found = _PAIR.fullmatch(text)
    return (int(found[1]) & 0xFF, int(found[2]) & 0x7F) if found else None
