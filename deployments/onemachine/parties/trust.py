"""The guards that the one-machine grid declares in its provider blocks. Only this module decides them."""

from __future__ import annotations

from deepgrid.slurm.ssh.login import LoginSettings

# Guards that need cgroups or mount namespaces, which slurmd does not have here, or rules of the machine's firewall.
ACCEPTED_GAPS = ("proctrack", "task_plugin", "contain", "private_tmp", "disk_quota", "connections")


def trusts_customers(login: LoginSettings) -> bool:
    """Whether all jobs share one account. They do, unless root has created one per customer."""
    return not login.accounts
