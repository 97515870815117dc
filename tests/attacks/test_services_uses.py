"""Lies of a provider about what jobs use, and readers without a part in the job."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from deepgrid.billing.use_samples import MOST_SAMPLES, UseHistory, UseSample
from deepgrid.client.display.use_graph import use_rows
from deepgrid.errors import AccessDenied, NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.messages import MAX_FIGURE, MAX_USES_AT_ONCE, MAX_USES_BODY_BYTES
from deepgrid.services.storage.database import UsedNonce
from deepgrid.services.storage.use_table import JobUseRecord
from tests.attacks.http_support import ask, rows
from tests.services.support import ACCOUNTS, DOMAIN, Grid

SAMPLE = UseSample(cpu_s=25, memory_mb=200, run_s=30)
LIES = ("-1", "NaN", "Infinity", "1e308", "1.5", "true", '"12"', '"\\u001b[2J"', "[]", str(MAX_FIGURE + 1), "9" * 5000)


def key(job_id: int = 1, claimed_at: int = 3) -> JobKey:
    return JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, job_id, claimed_at)


@pytest.fixture
def running(grid: Grid) -> None:
    for job_id in range(1, MAX_USES_AT_ONCE + 1):
        grid.chain.put(job_id, "ab" * 32, JobStatus.RUNNING, started_at=4)


async def send(grid: Grid, body: bytes) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await ask(client, grid, ACCOUNTS["provider"], "POST", "/v1/uses", body)


@pytest.mark.usefixtures("running")
@pytest.mark.attack(
    "figures of use that are negative, endless, no numbers, or texts that control a terminal", attacker="a provider",
    gain="nothing: the request is refused as a whole", defence="figures are whole numbers from 0 to 10^12, or null",
)  # fmt: skip
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[:12])
async def test_a_figure_that_is_no_amount_is_refused(grid: Grid, lie: str) -> None:
    for name in ("run_s", "cpu_s", "memory_mb", "gpu_percent"):
        figures = f'"run_s":1,"{name}":{lie}' if name != "run_s" else f'"run_s":{lie}'
        answer = await send(grid, b'{"uses":[{"job_id":1,"claimed_at":3,%s}]}' % figures.encode())
        assert answer.status_code == 422, answer.text
        assert len(answer.content) < 2000
    assert await rows(grid, JobUseRecord) == 0


@pytest.mark.usefixtures("running")
@pytest.mark.attack(
    "huge figures of use, and samples of a million seconds", attacker="a provider",
    gain="an absurd figure on its own customer's page; no money depends on it",
    defence="figures, samples and words are bounded; bars end at what was asked",
)  # fmt: skip
async def test_huge_figures_stay_harmless(grid: Grid) -> None:
    huge = UseSample(*[MAX_FIGURE] * 7)
    before = grid.chain.jobs_by_id[1]
    await grid.provider.send_uses({key(): replace(huge, run_s=1)})
    await grid.provider.send_uses({key(): huge})
    found = UseHistory(2, 800, 1, await grid.customer.job_use(1))
    shown = use_rows(None, found)
    assert all(len(words) < 300 and words.isprintable() for _, words in shown)
    assert "█" in dict(shown)["memory in use"]
    assert grid.chain.jobs_by_id[1] == before


@pytest.mark.usefixtures("running")
@pytest.mark.attack(
    "a sample each moment, and requests with more samples than a job can have", attacker="a provider",
    gain="64 samples of a job at most", defence="samples are joined beyond 64; one request has 100, in 64 KiB",
)  # fmt: skip
async def test_many_samples_fill_no_store(grid: Grid) -> None:
    for number in range(1, 3 * MOST_SAMPLES):
        await grid.provider.send_uses({key(): UseSample(cpu_s=number, run_s=number)})
    assert len(await grid.customer.job_use(1)) == MOST_SAMPLES
    one = b'{"job_id":1,"claimed_at":3,"run_s":%d}'
    repeated = b",".join(one % number for number in range(1000, 1000 + MAX_USES_AT_ONCE))
    assert (await send(grid, b'{"uses":[%s]}' % repeated)).status_code == 204
    assert len(await grid.customer.job_use(1)) == MOST_SAMPLES
    too_many = b",".join([one % 1] * (MAX_USES_AT_ONCE + 1))
    assert (await send(grid, b'{"uses":[%s]}' % too_many)).status_code == 422
    assert (await send(grid, b" " * (MAX_USES_BODY_BYTES + 1))).status_code == 413
    assert await rows(grid, JobUseRecord) == 1


@pytest.mark.usefixtures("running")
@pytest.mark.attack(
    "figures for jobs of another provider, of an earlier claim, and of a job that is over", attacker="a provider",
    gain="nothing", defence="a sample counts for a running claim of its sender on chain",
)  # fmt: skip
async def test_no_provider_writes_on_anothers_job(grid: Grid) -> None:
    grid.chain.put(2, "ab" * 32, JobStatus.FINISHED, started_at=4, ended_at=9)
    earlier, over = key(claimed_at=2), key(2)
    before = await rows(grid, JobUseRecord, UsedNonce)
    strangers = (grid.other_provider, key()), (grid.customer, key())
    for sender, of in (*strangers, (grid.provider, earlier), (grid.provider, over)):
        with pytest.raises(AccessDenied, match="none of these jobs is a running claim"):
            await sender.send_uses({of: SAMPLE})
    assert await rows(grid, JobUseRecord, UsedNonce) == before
    await grid.provider.send_uses({over: SAMPLE, key(3): SAMPLE})
    assert await rows(grid, JobUseRecord) == 1, "the others are kept"


@pytest.mark.usefixtures("running")
@pytest.mark.attack(
    "reading what another customer's job uses", attacker="another customer",
    gain="nothing", defence="only the job's customer, its provider and the operator read it",
)  # fmt: skip
async def test_another_customer_reads_no_samples(grid: Grid) -> None:
    await grid.provider.send_uses({key(): SAMPLE})
    with pytest.raises(AccessDenied, match="has no part in job 1"):
        await grid.rival.job_use(1)
    with pytest.raises(NotFound):
        await grid.customer.job_use(2)
