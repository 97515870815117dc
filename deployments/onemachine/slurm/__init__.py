"""Real Slurm clusters on one machine, without systemd, and the accounts of their jobs.

`SlurmSite` has the daemons of several clusters. `slurm_files` writes their configuration, `slurm_steps` ends what they
leave running, `accounts` chooses Unix accounts.
"""

from deployments.onemachine.slurm.slurm_site import PARTITION, ClusterSpec, SlurmSite

__all__ = ["PARTITION", "ClusterSpec", "SlurmSite"]
