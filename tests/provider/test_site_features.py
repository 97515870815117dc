"""Features of nodes as a supervisor keeps them: over a restart, as labels, and as reasons to give a job back."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.errors import SlurmError
from deepgrid.lifecycle.feature_labels import lacked_features, lacks
from deepgrid.lifecycle.job import Affinity, Label
from deepgrid.provider import site_features
from deepgrid.provider.site_features import SiteFeatures
from deepgrid.sbatch import Containers
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.features import NodeFeatures
from deepgrid.workflow.needs import PRIVATE_FILES

CLUSTER = object.__new__(Cluster)
S3 = Affinity("storage.s3", "==", "true")
IN_CONTAINER = Affinity("containers", "!=", "none")
PUBLIC = b"\x02" + b"a" * 32
GFLOPS, OLD = Label("compute.gflops", "1.00"), Label("containers", "enroot")


@pytest.fixture
def features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteFeatures:
    """Features of a cluster whose nodes have Apptainer alone. A look without time for it fails."""

    async def look(_: Cluster, apptainer: str, within_s: float) -> NodeFeatures | None:
        if within_s < 1:
            raise SlurmError("sbatch does not answer", transient=True)
        found = frozenset(["containers.apptainer", "storage.private"])
        return NodeFeatures("n1", found) if apptainer == "/opt/apptainer" else None

    monkeypatch.setattr(site_features, "look_at_node", look)
    return SiteFeatures(tmp_path / "features.json", Containers(apptainer="/opt/apptainer"), PUBLIC)


async def test_before_a_look_nothing_is_known_to_be_missing(features: SiteFeatures, tmp_path: Path) -> None:
    assert await features.look(CLUSTER, 0.5) is None
    assert features.in_labels((GFLOPS, OLD)) == (GFLOPS, OLD)
    assert features.why_unfit((S3,), ()) == ""
    assert features.containers.enroot
    (tmp_path / "features.json").write_text("[1, 2]")
    assert SiteFeatures(tmp_path / "features.json", Containers(), PUBLIC).last is None


@pytest.mark.situation("features", "a site loses or gains a tool", "its labels follow the next look, within an hour")
async def test_labels_follow_the_last_look_also_after_a_restart(features: SiteFeatures, tmp_path: Path) -> None:
    await features.look(CLUSTER, 5)
    again = SiteFeatures(tmp_path / "features.json", Containers(), PUBLIC)
    await again.look(CLUSTER, 0.5)
    for one in (features, again):
        assert one.in_labels((GFLOPS, OLD)) == (
            GFLOPS,
            Label("containers", "apptainer"),
            Label("memory.limits", "none"),
            Label("storage.private", PUBLIC.hex()),
        )


@pytest.mark.situation("features", "nodes with Apptainer and without Enroot", "Apptainer runs the default containers")
async def test_apptainer_runs_all_containers_where_it_is_alone(features: SiteFeatures) -> None:
    await features.look(CLUSTER, 5)
    assert not features.containers.enroot


@pytest.mark.situation("features", "a job that needs a missing tool and does not say so", "it is given back, free")
async def test_a_job_that_needs_what_the_nodes_lack_is_unfit(features: SiteFeatures) -> None:
    await features.look(CLUSTER, 5)
    assert features.why_unfit((IN_CONTAINER, PRIVATE_FILES), ()) == ""
    reason = features.why_unfit((IN_CONTAINER, S3), ())
    assert "this cluster lacks it: storage.s3 (s5cmd" in reason
    assert features.why_unfit((S3,), (Label("storage.s3", "true"),)) == "", "the provider knows better"
    assert lacked_features(reason) == {"storage.s3"}
    assert lacked_features("no: " + lacks(["containers"])) == frozenset()
