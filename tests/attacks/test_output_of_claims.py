"""Providers that send files for a job and give it back, at the output of the claim that ended the job."""

from __future__ import annotations

import pytest

from deepgrid.errors import NotFound
from deepgrid.lifecycle.states import JobStatus
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.files.conftest import files  # noqa: F401 - a fixture
from tests.services.files.support import FileGrid, get, grid_job, put
from tests.services.support import ACCOUNTS

FORGED, SECOND = "forged", 9  # the name of a file, and the time of the second claim
MANIFEST = b"0 644 %s  %s\0"
EMPTY = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


async def sends(address: str, name: str) -> None:
    """Send an empty file of this name to the address, and say that it is all."""
    assert (await put(address + "/manifest", MANIFEST % (EMPTY, name.encode()))).status_code == 204
    assert (await put(address + "/finish", b"")).status_code == 204


async def second_claim(grid: FileGrid, job_id: int, status: JobStatus) -> None:
    name = grid.services.chain.jobs_by_id[job_id].definition.definition_hash
    changes = {"provider": ACCOUNTS["other_provider"].address, "claimed_at": SECOND}
    grid.services.chain.put(job_id, name, status, **changes)


@pytest.mark.attack(
    "sends forged files as a job's output and gives the job back, so that they count once another provider ran the job",
    attacker="a provider", gain="nothing: its files are deleted at the next claim",
    defence="only the files of the claim on chain are the output; earlier ones are neither shown, shared nor an input",
)  # fmt: skip
async def test_the_output_of_a_claim_that_was_given_back(files: FileGrid) -> None:  # noqa: F811
    await files.claimed(grid_job(":"))
    await sends((await files.addresses()).output, FORGED)
    customer = files.client()
    link = customer.url((await customer.share(1, 3600)).address or "")
    assert await files.names() == [FORGED]
    waiting = await files.services.customer.upload(grid_job(":", {"job": 1}, output=False))
    for status in (JobStatus.RUNNING, JobStatus.FINISHED):  # its own upload never came
        await second_claim(files, 1, status)
        for ask in (customer.of_job(1), customer.share(1, 3600)):
            with pytest.raises(NotFound):
                await ask
    with pytest.raises(NotFound):
        await files.services.customer.upload(grid_job("true", {"job": 1}, output=False))
    files.services.chain.put(2, waiting)
    with pytest.raises(NotFound):
        await files.client("provider").transfers(2)

    await second_claim(files, 1, JobStatus.RUNNING)
    given = await files.client("other_provider").transfers(1)
    assert (await get(link + "/data")).status_code == 404
    assert not [path for path in files.store.rglob("*") if path.is_file()]  # nor do they count for the quota
    await sends(files.client().url(given.output or ""), "true")
    await second_claim(files, 1, JobStatus.FINISHED)
    assert await files.names() == ["true"]
