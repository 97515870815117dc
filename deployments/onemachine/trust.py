"""What the one-machine grid says of its guards in its provider blocks. The only place that decides it."""

from __future__ import annotations

from deepgrid.slurm.ssh.login import LoginSettings

# Guards that need cgroups or mount namespaces, which slurmd does not have here.
ACCEPTED_GAPS = ("proctrack", "task_plugin", "contain", "private_tmp")


def trusts_customers(login: LoginSettings) -> bool:
    """Whether all jobs share one account, as they do unless root made one for each customer."""
    return not login.accounts
