"""Labels of features: what a cluster offers to jobs in addition to CPUs, memory and GPUs.

A look at a node finds them (`deepgrid.slurm.setup.features`). What a job needs follows from its definition
(`deepgrid.workflow.needs`). A cluster without a feature lacks the label, so it does not meet a condition on it.
"""

from __future__ import annotations

from collections.abc import Iterable

CONTAINERS = "containers"
S3 = "storage.s3"
HTTP = "storage.http"
PASTA = "network.pasta"
SLIRP4NETNS = "network.slirp4netns"
WIREGUARD = "network.wireguard"
MEMORY_LIMITS = "memory.limits"
PRIVATE = "storage.private"  # its value is the public key of the cluster's account

YES = "true"  # value of a feature that a cluster has or lacks
RUNTIMES = ("apptainer", "enroot")  # values of CONTAINERS, joined by "-" where a cluster has both

FEATURES = {
    CONTAINERS: "a container runtime",
    S3: "s5cmd, for input and output over S3",
    HTTP: "curl and zip, for input and output over HTTP",
    PASTA: "networks of steps with pasta",
    SLIRP4NETNS: "networks of steps with slirp4netns",
    WIREGUARD: "WireGuard",
    MEMORY_LIMITS: "limits on the memory of jobs",
    PRIVATE: "a public key for private files",
}
"""The key of each feature's label, and the feature in words."""

_LACKS = "the job needs what its labels do not name, and this cluster lacks it: "


def lacks(keys: Iterable[str]) -> str:
    """Return why a cluster gives a job back that needs these features."""
    return _LACKS + ", ".join(f"{key} ({FEATURES[key]})" for key in sorted(keys))


def lacked_features(reason: str) -> frozenset[str]:
    """Return the keys of the features in a reason of `lacks`; empty for another text."""
    if not reason.startswith(_LACKS):
        return frozenset()
    return frozenset(key for key, words in FEATURES.items() if f"{key} ({words})" in reason)
