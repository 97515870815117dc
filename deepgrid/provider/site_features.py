"""The features of a cluster's nodes, as the last look found them. A file keeps them over a restart."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deepgrid.errors import GridError
from deepgrid.files.private_files import replace_file
from deepgrid.lifecycle.feature_labels import FEATURES, PRIVATE, lacks
from deepgrid.lifecycle.job import Affinity, Label
from deepgrid.sbatch import Containers
from deepgrid.scheduling.fit import unmet
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.features import NodeFeatures, look_at_node

logger = logging.getLogger(__name__)


class SiteFeatures:
    """What jobs find on the nodes of one cluster. `last` is None until a first look succeeds.

    The label of private files has `public_key`, for which customers encrypt.
    """

    def __init__(self, file: Path, containers: Containers, public_key: bytes) -> None:
        self._file = file
        self._containers = containers
        self._public_key = public_key
        self.last = _read(file)

    async def look(self, cluster: Cluster, within_s: float) -> NodeFeatures | None:
        """Look at a node, for at most `within_s` seconds. Without an answer, the last one stays."""
        try:
            found = await look_at_node(cluster, self._containers.apptainer, within_s) if within_s else None
        except GridError as error:
            logger.warning("cannot look at a node for what jobs may need: %s", error.message)
            found = None
        if found is not None:
            self.last = found
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file, json.dumps({"node": found.node, "found": sorted(found.found)}).encode())
        return self.last

    @property
    def containers(self) -> Containers:
        """How containers run here. Where nodes have Apptainer and no Enroot, Apptainer runs all of them."""
        enroot = self.last is None or self.last.runtimes != ("apptainer",)
        return self._containers if enroot else replace(self._containers, enroot=False)

    def in_labels(self, measured: Sequence[Label]) -> tuple[Label, ...]:
        """Return the measured labels, with the earlier feature labels replaced by these."""
        if self.last is None:
            return tuple(measured)
        found = (replace(one, value=self._public_key.hex()) if one.key == PRIVATE else one for one in self.last.labels)
        return (*(label for label in measured if label.key not in FEATURES), *found)

    def why_unfit(self, needs: Sequence[Affinity], own: Sequence[Label]) -> str:
        """Return why a job with these needs cannot run here; empty if nothing is known to be missing.

        The provider's `own` labels win: it may know more than a look at one node.
        """
        if self.last is None:
            return ""
        lacking = {need.key for need in needs if unmet((*self.last.labels, *own), (), (need,))}
        return lacks(lacking) if lacking else ""


def _read(file: Path) -> NodeFeatures | None:
    try:
        kept = json.loads(file.read_bytes())
        return NodeFeatures(str(kept["node"]), frozenset(map(str, kept["found"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
