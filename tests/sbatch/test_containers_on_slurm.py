"""Steps in real containers of Apptainer, under an ordinary account on a real Slurm cluster.

Images come from registries on this machine, from a file, and from a folder of the provider. The tests run the
examples about containers, and failures. Enroot and Pyxis, which Debian does not have, are tested with stand-ins in
`test_containers`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.client.workflow import read_workflow
from deepgrid.lifecycle.job import JobKey
from deepgrid.recipes import remote
from deepgrid.recipes.results import result_in
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import Definition, parse
from tests.sbatch.examples import CONTAINER_EXAMPLES, FOLDER
from tests.sbatch.slurm_support import node as node
from tests.sbatch.slurm_support import programs as programs
from tests.sbatch.slurm_support import run
from tests.sbatch.slurm_support import storage as storage
from tests.sbatch.store import Store
from tests.sbatch.support import without_progress
from tests.slurm.support import Box

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

RESOURCES = "enableLogging: true\nresources: {tasks: 4, cpusPerTask: 1, memPerCpu: 200, gpus: 0}\n"
BOX = "container: {image: 'busybox:1.36', apptainer: true}"


@dataclass
class Here:
    """The cluster and its settings for containers."""

    cluster: Cluster
    monitor: SlurmMonitor
    key: JobKey
    box: Box
    storage: StoragePaths
    programs: Path
    containers: Containers

    async def run(self, job: Definition) -> tuple[int, list[str]]:
        """Run a job. Returns its status and its own lines of output."""
        status, output = await run(
            job, self.cluster, self.monitor, self.key, self.box, self.storage, self.programs, self.containers
        )
        return status, without_progress(output)

    async def run_steps(self, steps: str) -> tuple[int, list[str]]:
        return await self.run(parse(RESOURCES + "steps:" + steps, "job").model)


@pytest.fixture
def here(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths,
    programs: Path, containers: Containers,
) -> Here:  # fmt: skip
    return Here(cluster, monitor, key, box, storage, programs, containers)


@pytest.mark.parametrize("name", CONTAINER_EXAMPLES)
async def test_an_example_does_what_it_says(name: str, here: Here, store: Store, images: Path) -> None:
    store.files["/image.sif"] = (images / "image.sif").read_bytes()
    text = (FOLDER / f"{name}.yaml").read_text().replace("http://127.0.0.1:8000", store.url)
    status, lines = await here.run(parse(text, name).model)
    assert sorted(lines) == sorted(CONTAINER_EXAMPLES[name])
    assert status == 0


async def test_a_container_sees_only_the_storage_of_the_node(here: Here) -> None:
    status, lines = await here.run_steps(f"""
  - run:
      command: |
        [ "$(id -u)" != 0 ] && echo "an ordinary account"
        [ "$(ls /tmp /home /root 2>&1 | grep -v -e : -e '^$')" = "" ] && echo "no folders of the node"
        for folder in "$STORAGE_PATH" "$DEEPSQUARE_INPUT" "$DEEPSQUARE_TMP" "$DEEPSQUARE_SHARED_TMP" \\
          "$DEEPSQUARE_SHARED_WORLD_TMP" "$DEEPSQUARE_DISK_TMP" "$DEEPSQUARE_DISK_WORLD_TMP"; do
          touch "$folder/x" && rm "$folder/x" && echo "$folder"
        done
      {BOX}
""")
    volumes = ["", "/input", "/tmp", "/tmp", "/world-tmp", "/disk/tmp", "/disk/world-tmp"]
    expected = ["an ordinary account", "no folders of the node", *(f"/deepsquare{volume}" for volume in volumes)]
    assert (status, lines) == (0, expected)


async def test_variables_arrive_unchanged_and_those_of_the_step_win(here: Here) -> None:
    status, lines = await here.run_steps(f"""
  - run:
      command: printf '%s\\n' "$A" "<$FROM>" "$DEEPSQUARE_TMP" "$STORAGE_PATH"
      env:
        - {{key: A, value: "$(id) `id`\\n'quoted' \\"twice\\" \\\\ $HOME"}}
        - {{key: FROM, value: ''}}
        - {{key: DEEPSQUARE_TMP, value: mine}}
      {BOX}
""")
    assert (status, lines) == (0, ["$(id) `id`", "'quoted' \"twice\" \\ $HOME", "<>", "mine", "/deepsquare"])


async def test_a_remote_call_of_a_python_function_runs_in_a_container(here: Here) -> None:
    """The image has no Python. The container sees the node's one."""

    def folders(path: str) -> list[str]:

        return os.listdir(path)

    token = "ab" * 16
    mounts = [{"hostDir": path, "containerDir": path, "options": "ro"} for path in ("/usr", "/lib", "/lib64")]
    image = {"image": "busybox:1.36", "apptainer": True, "mounts": mounts}
    content = remote.workflow(token, image, remote.Resources(memory_mb=200), "/usr/bin/python3")
    call = (await read_workflow(content)).env(REMOTE_CALL=remote.pickle_call(folders, "/srv"))
    status, lines = await here.run(call.definition)
    assert (status, result_in(lines, token)) == (0, ["app"])


async def test_failures_of_containers_are_reported_and_can_be_caught(here: Here) -> None:
    gone = "container: {image: 'busybox:1.36', registry: gone.example.org, apptainer: true}"
    status, lines = await here.run_steps(f"""
  - run: {{command: echo never, {gone}}}
    catch: [{{run: {{command: echo caught $DEEPSQUARE_ERROR_CODE}}}}]
  - run: {{command: echo never, container: {{image: /input/none.sif, apptainer: true}}}}
    catch: [{{run: {{command: echo caught $DEEPSQUARE_ERROR_CODE}}}}]
  - for: {{parallel: true, items: [a, b, c], steps: [{{run: {{command: exit 7, {BOX}}}}}]}}
""")
    assert [line for line in lines if not line.startswith("FATAL:")] == [
        "deepgrid: the image of a container could not be fetched", "caught 1", "caught 255",
    ]  # fmt: skip
    assert "localhost:1" in lines[0]
    assert status == 7


async def test_a_launch_in_a_container_ends_with_its_scope(here: Here) -> None:
    mark = "launched-" + here.key.folder
    status, lines = await here.run_steps(f"""
  - launch: {{steps: [{{run: {{command: 'echo {mark} >/deepsquare/up; while :; do sleep 0.1; done', {BOX}}}}}]}}
  - run: {{command: 'until [ -e up ]; do sleep 0.1; done; echo up'}}
""")
    lines = [line for line in lines if line != "Terminated"]  # the shell prints this about its sleep
    assert (status, lines) == (0, ["up"])
    await asyncio.to_thread(await_end_of, mark)


def await_end_of(mark: str) -> None:
    """Wait until no process has this text in its command line."""
    deadline = time.monotonic() + 60
    while subprocess.run(["pgrep", "-f", mark], check=False, stdout=subprocess.DEVNULL).returncode == 0:
        assert time.monotonic() < deadline, "the container still runs"
        time.sleep(0.1)


@pytest.mark.parametrize("mapping", ["mapUid: null", "mapUid: 0"])
async def test_a_container_can_have_its_own_network(here: Here, node: list[str], mapping: str) -> None:
    """The container has the step's interfaces and name servers."""
    status, lines = await here.run_steps(f"""
  - run:
      command: "cut -d : -f 1 -s /proc/net/dev | tr -d ' '; grep nameserver /etc/resolv.conf"
      network: slirp4netns
      dns: [192.0.2.53]
      {mapping}
      {BOX}
""")
    if node[0]:
        assert (status, node[0] in lines) == (69, True)
    else:
        assert (status, sorted(lines)) == (0, ["lo", "nameserver 192.0.2.53", "net0"])
