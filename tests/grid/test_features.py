"""Jobs with containers, with S3, and with neither run on the grid of this machine; others cost nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from deepgrid.client.order import read_order
from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import LOCKED_WEI, Customer
from tests.grid.support import HEAD, cold, steps
from tests.sbatch.bucket import Bucket
from tests.sbatch.bucket import s3_server as s3_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

# The default job of existing clients names this image.
IN_CONTAINER = """
steps:
  - run:
      command: tr a-z A-Z <"$DEEPSQUARE_INPUT/greeting" >"$DEEPSQUARE_OUTPUT/answer"; grep -c Debian /etc/os-release
      container: {image: "ubuntu:latest"}
"""
IN_NETWORK = HEAD + "steps: [{run: {command: 'true', network: slirp4netns}}]\n"
GREEDY = """python3 -c 'import time; taken = bytearray(900 << 20); time.sleep(60)'"""


@pytest.fixture(scope="module")
def bucket(s3_server: Bucket) -> Iterator[Bucket]:
    s3_server.put("in/greeting", b"hello\n")
    yield s3_server
    s3_server.empty()


@pytest.mark.situation("features", "the default job of existing clients, with S3, on one machine", "it runs")
async def test_a_job_in_a_container_takes_and_leaves_files_in_s3(
    customer: Customer, grid: LocalGrid, bucket: Bucket
) -> None:
    if grid.slurm.programs.note:
        pytest.skip(grid.slurm.programs.note)
    places = f"input: {json.dumps(bucket.at('/in/'))}\noutput: {json.dumps(bucket.at('/out'))}"
    job_id = customer.submit(HEAD + places + IN_CONTAINER)
    job = await customer.until(job_id, cold)
    log = customer.dps("job", "logs", str(job_id)).stdout
    assert (job.status, job.exit_status) == (JobStatus.FINISHED, 0), log
    assert "image ubuntu:latest is this cluster's own copy" in log
    assert bucket.files()["out/answer"] == b"HELLO\n"
    assert (await customer.settlement(job_id)).billed_minutes == 1


@pytest.mark.situation("features", "a job that takes more memory than it asked for, on one machine", "it is ended")
async def test_a_greedy_job_is_ended(customer: Customer) -> None:
    job_id = customer.submit(steps(GREEDY))
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.FAILED
    assert "memory" in (job.last_error + customer.dps("job", "logs", str(job_id)).stdout)


@pytest.mark.situation("features", "a job needs what no cluster of the grid has", "it is refused before it costs")
async def test_a_job_for_a_missing_feature_costs_nothing(customer: Customer) -> None:
    """No job may open /dev/net/tun here, so no step can have a network of its own."""
    with pytest.raises(InputError, match="needs networks of steps with slirp4netns, which no cluster of the grid has"):
        customer.submit(IN_NETWORK)
    file = customer.home / "network.yaml"
    file.write_text(IN_NETWORK)
    shown = customer.dps("offers", str(file), "--json", check=0).stdout
    obstacles = {offer["cluster"]: offer["obstacle"] for offer in json.loads(shown)}
    why = "has no label network.slirp4netns==true (networks of steps with slirp4netns)"
    assert obstacles == {"alpha": why, "beta": why}


@pytest.mark.situation("features", "the same from a client that adds no labels", "each cluster gives it back, free")
async def test_a_job_without_labels_is_given_back(customer: Customer) -> None:
    file = customer.home / "unnamed.yaml"
    file.write_text(IN_NETWORK)
    job_id = customer.place(replace(read_order(file, LOCKED_WEI), needs=()))
    job = await customer.until(job_id, lambda job: job.last_refuser is not None and job.status is JobStatus.PENDING)
    assert job.started_at == 0
    customer.dps("job", "cancel", str(job_id))
    await customer.until(job_id, cold)
    assert (await customer.settlement(job_id)).refunded_wei == LOCKED_WEI
