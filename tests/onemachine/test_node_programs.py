"""What nodes of the one-machine grid have for jobs: containers, S3, and limits on memory, on a real Slurm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.features import look_at_node
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec, SlurmSite, slurm_site
from deployments.onemachine.slurm.node_programs import closed_folders, memory_limits
from tests.running_site import running_site
from tests.slurm.support import ended, new_key, open_folder

pytestmark = pytest.mark.long

MODEST = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=200, gpus=0, time_limit_minutes=5)
GREEDY = "#!/bin/bash\npython3 -c 'import time; taken = bytearray(900 << 20); time.sleep(60)'\n"
IN_IMAGE = "exec --contain --no-home {image} bash -c 'grep -c . /etc/debian_version; awk \"BEGIN {{ print 6 * 7 }}\"'"


@pytest.fixture(scope="module")
def site() -> Iterator[SlurmSite]:
    """Two clusters. The second one has no cgroups."""
    limits = iter([memory_limits(), "sampled"])
    with open_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm_site, "memory_limits", lambda: next(limits))
        specs = [ClusterSpec(name, nodes=1, private=False, accounting=False, equipped=True) for name in ("one", "two")]
        with running_site(folder, *specs) as (site, _):
            yield site


@pytest.fixture(params=["one", "two"])
async def cluster(request: pytest.FixtureRequest, site: SlurmSite) -> AsyncIterator[Cluster]:
    settings = site.login(request.param)
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


def limits_of(cluster: Cluster) -> str:
    return memory_limits() if cluster.settings.grid_root.endswith("/one/grid") else "sampled"


async def test_a_job_has_containers_s3_and_a_limit_on_its_memory(cluster: Cluster, site: SlurmSite) -> None:
    if site.programs.note:
        pytest.skip(site.programs.note)
    looked = await look_at_node(cluster, site.programs.apptainer)
    assert looked is not None
    assert looked.found >= {"containers.apptainer", "storage.s3", "storage.http"}
    assert looked.memory_limits == limits_of(cluster)
    inside = IN_IMAGE.format(image=site.programs.local_images["ubuntu:latest"])
    script = f"#!/bin/bash\n{site.programs.apptainer} --silent {inside}"
    output = await cluster.batch.run("try", script, ["--ntasks=1"], limit_minutes=2, wait_minutes=2)
    assert output.split() == ["1", "42"]


@pytest.mark.situation("features", "a process takes 900 MB in a job of 200 MB", "the kernel or Slurm ends it")
async def test_a_greedy_job_is_ended(cluster: Cluster) -> None:
    key, monitor = new_key(), SlurmMonitor(cluster, poll_s=0.2)
    await cluster.submit(key, GREEDY, MODEST)
    state = await ended(monitor, key)
    await monitor.close()
    if limits_of(cluster) == "cgroup":
        assert state.state == "OUT_OF_MEMORY"
    else:
        assert (state.state, state.exit_status & 0x7F) == ("FAILED", 9)


def test_folders_that_keep_others_out_are_named(tmp_path: Path) -> None:
    (tmp_path / "open" / "closed" / "open").mkdir(parents=True)
    (tmp_path / "open").chmod(0o711)
    (tmp_path / "open" / "closed").chmod(0o700)
    (tmp_path / "open" / "closed" / "open").chmod(0o755)
    assert closed_folders(tmp_path / "open" / "closed" / "open")[0] == tmp_path / "open" / "closed"
