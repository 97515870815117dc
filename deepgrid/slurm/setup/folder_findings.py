"""What doctor says about the grid's folder on the login node: whether it is there, writable, and open to jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deepgrid.findings import Finding, Level
from deepgrid.slurm.ssh.login_settings import LoginSettings


def judge_folders(values: Mapping[str, str], settings: LoginSettings) -> Iterator[Finding]:
    """Yield the first fault of the grid's folders: others are its consequences."""
    account = values["account"]
    for name in ("", "jobs"):
        state = values.get(f"folder {'/' + name if name else '/'}", "missing")
        path = f"{settings.grid_root}/{name}".rstrip("/")
        if state == "writable" or (name and state == "missing"):  # the first job makes the folder
            continue
        words = f"{path} is {state} for {account}: no job can be submitted."
        step = f"Make {account} its owner, with mode 711." if state == "not writable" else _MAKE.format(account)
        yield Finding("folder", Level.BAD, words, step)
        return
    closed = [path.removeprefix("closed ") for path in values if path.startswith("closed ")]
    if closed and (settings.accounts or settings.job_account not in (None, account)):
        modes = ", ".join(f"{path} (mode {values[f'closed {path}']})" for path in closed)
        words = f"The accounts of jobs cannot pass {modes}: no job of a customer can start."
        yield Finding("folder", Level.BAD, words, f"Run chmod o+x {' '.join(closed)}.")


_MAKE = "Create it for {}, on a file system shared with the nodes."
