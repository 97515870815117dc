"""What a look at a node finds for jobs: container runtimes, storage clients, networks, memory limits.

The look is a job of a second on one node, so all nodes of the partition should be alike. The shell function
`look_at_features` prints the lines that `NodeFeatures.parse` reads.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from deepgrid.lifecycle import feature_labels as keys
from deepgrid.lifecycle.job import Label
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.scripts import read_script

FEATURE = "feature "  # begins each line of a node's answer that names a feature
LOOK_TIMEOUT_S = 60.0
LOOK = read_script("config.sh", "features.sh")
"""Shell functions. `look_at_features APPTAINER [PATH]` needs the output of `scontrol show config` in $config."""

PYTHON = "python3"  # the feature that sessions in jobs need
# Those that a look finds under the name of their label.
_FLAGS = (keys.HTTP, keys.PASTA, keys.PRIVATE, keys.S3, keys.SLIRP4NETNS, keys.WIREGUARD)
_LOOKED = "looked"


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """The features of one node by name, such as `containers.apptainer`, `storage.s3` and `network.pasta`."""

    node: str
    found: frozenset[str]

    @classmethod
    def parse(cls, node: str, lines: Iterable[str]) -> Self:
        """Return the features that the lines of a node's answer name. Other lines are skipped."""
        return cls(node, frozenset(line.removeprefix(FEATURE).strip() for line in lines if line.startswith(FEATURE)))

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Names of the container runtimes."""
        return tuple(name for name in keys.RUNTIMES if f"{keys.CONTAINERS}.{name}" in self.found)

    @property
    def memory_limits(self) -> str:
        """How Slurm ends a job that takes more memory than it asked for.

        `cgroup`: by the kernel, at once. `sampled`: when Slurm next looks. `none`: it does not.
        """
        return next((way for way in ("cgroup", "sampled") if f"memory.{way}" in self.found), "none")

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of a cluster of such nodes, sorted by key."""
        values = {key: keys.YES for key in _FLAGS if key in self.found}
        values[keys.MEMORY_LIMITS] = self.memory_limits
        if self.runtimes:
            values[keys.CONTAINERS] = "-".join(self.runtimes)
        return tuple(Label(key, value) for key, value in sorted(values.items()))


async def look_at_node(
    cluster: Cluster, apptainer: str = "apptainer", timeout_s: float = LOOK_TIMEOUT_S
) -> NodeFeatures | None:
    """Run a job that looks at its node. Returns None when no node ran it within `timeout_s` seconds.

    `apptainer` is the program's name or path on the nodes. Raises SlurmError when Slurm refuses the job.
    """
    config = "config=$(timeout 20 scontrol show config)"
    script = f"{LOOK}\n{config}\nuname -n\nlook_at_features {shlex.quote(apptainer)}\necho {_LOOKED}"
    state, output = await cluster.batch.probe(f"features-{secrets.token_hex(8)}", script, timeout_s)
    lines = output.splitlines()
    if state != "COMPLETED" or lines[-1:] != [_LOOKED]:
        return None
    return NodeFeatures.parse(lines[0], lines)
