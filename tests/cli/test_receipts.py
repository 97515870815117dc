"""`dps job receipt` and `dps receipt verify`, with a receipt that the provider's desk signed on a real chain."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest

from deepgrid import AsyncGrid
from deepgrid import Grid as OpenGrid
from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Allocation
from deepgrid.billing.resource_use import Measured
from deepgrid.billing.use_samples import UseSample
from deepgrid.chain.client import Chain
from deepgrid.chain.job_trail import read_trails
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.shared.receipt_desk import ReceiptDesk, ReceiptJournal, Seen, Signatory
from deepgrid.services.receipts import read_receipt, sign_receipt
from deepgrid.services.signing.request_signing import Domain
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.step_uses import Run
from tests.cli.live import CREDIT, Dps, Live, Party

TRES = "cpu=1,mem=128M,node=1,used/cpu=27,used/mem=30M"
USED = Measured(cpu_s=27, memory_mb=30)


@dataclass(frozen=True)
class Accounting:
    """The accounting of a cluster, with one run."""

    seen: SlurmJob

    async def accounting(self, _since: int, *, ids: list[int]) -> list[Row]:
        given = Allocation(cpus=1, nodes=1, mem_mb=128, gpus=0)
        return [Row(slurm_id, "1000", "COMPLETED", self.seen.started_at, given=given) for slurm_id in ids]


class Uses:
    """The accounting of a cluster, with what each run used."""

    async def of_all(self, runs: Collection[Run]) -> dict[Run, Measured]:
        return dict.fromkeys(runs, USED)


async def send_receipt(chain: Chain, provider: Party, job_id: int, folder: Path) -> bytes:
    """Let the provider's desk sign the receipt of a settled job and send it. Returns what the services keep."""
    job, book = await chain.job(job_id), chain.book
    seen = SlurmJob(Phase.ENDED, 7, "COMPLETED", job.started_at, job.started_at + 30, nodes="n1")
    account = provider.writer.sender.wallet.account
    signatory = Signatory(Domain(book.chain_id, book.meta_scheduler), account, "alpha", "main", stable_s=0)
    key = JobKey(book.chain_id, book.meta_scheduler, job.id, job.claimed_at)
    journal = ReceiptJournal(folder / "alpha.receipts.json", key)
    desk = ReceiptDesk(chain, Accounting(seen), Uses(), provider.services, signatory, journal)  # type: ignore[arg-type]
    desk.add(key, seen)
    assert len(ReceiptJournal(folder / "alpha.receipts.json", key)) == 1, "a restart loses nothing"
    await desk.send({key: Seen.of(seen)})
    assert len(journal) == 0
    return await provider.services.receipt(job_id)


@pytest.fixture
async def receipt(dps: Dps, running_id: int, chain: Chain, provider: Party, tmp_path: Path) -> Path:
    """The file of the receipt of a job that was topped up and finished."""
    await dps.run("job", "topup", str(running_id), "7", "--force")
    await provider.writer.settle(running_id, JobStatus.FINISHED, 1)
    file = tmp_path / "receipt.json"
    file.write_bytes(await send_receipt(chain, provider, running_id, tmp_path))
    return file


async def test_a_receipt_of_a_real_job(
    dps: Dps, live: Live, running_id: int, receipt: Path, chain: Chain, provider: Party, tmp_path: Path
) -> None:
    shown = await dps.run("job", "receipt", str(running_id))
    assert (shown.status, shown.err) == (0, ""), shown
    for words in (f"Receipt of job {running_id}", "rule", TRES, "topped up", "settled", "COMPLETED", provider.address):
        assert words in shown.out
    as_json = await dps.run("job", "receipt", str(running_id), "--json")
    assert as_json.out.encode() == receipt.read_bytes()
    written = await dps.run("job", "receipt", str(running_id), "--pdf", tmp_path / "receipt.pdf")
    assert written.status == 0, written
    assert (tmp_path / "receipt.pdf").read_bytes().startswith(b"%PDF-")
    got = json.loads((await dps.run("job", "get", str(running_id), "--json")).out)["resource_use"]
    assert (got["asked_cpus"], got["cpu_s"], got["memory_mb"], got["read_mb"]) == (1, 27, 30, None)
    assert "asked 1 CPU, used 0.9; asked 128 MB, used 30 MB" in (await dps.run("job", "get", str(running_id))).out
    money = json.loads(as_json.out)["receipt"]["money"]
    job = await chain.job(running_id)
    assert (money["top_ups_wei"], money["locked_wei"]) == (str(7 * CREDIT), str(107 * CREDIT))
    assert int(money["cost_wei"]) == job.final_cost_wei > 0
    on_chain = (await read_trails(chain, [job]))[job.id]
    entries = json.loads(as_json.out)["receipt"]["transactions"]
    assert [one["what"] for one in entries] == [
        "requested", "assigned", "claimed", "reported running", "topped up", "settled",
    ]  # fmt: skip
    assert [(one["block"], one["log_index"]) for one in entries] == [(e.block, e.log_index) for e in on_chain.entries]


async def test_a_running_job_shows_what_it_uses(
    dps: Dps, live: Live, running_id: int, chain: Chain, provider: Party
) -> None:
    unknown = await dps.run("job", "get", str(running_id))
    assert (unknown.status, "in use" in unknown.out) == (0, False)
    job, book = await chain.job(running_id), chain.book
    key = JobKey(book.chain_id, book.meta_scheduler, job.id, job.claimed_at)
    for number in (1, 2):
        sample = UseSample(cpu_s=54 * number, memory_mb=100, run_s=60 * number)
        await provider.services.send_uses({key: sample})
    shown = await dps.run("job", "get", str(running_id))
    assert "asked 1 CPU, used 0.9; asked 128 MB, used 100 MB (in its first 2 min)" in shown.out
    assert "CPUs in use" in shown.out
    got = json.loads((await dps.run("job", "get", str(running_id), "--json")).out)
    assert [one["cpu_s"] for one in got["use_over_time"]] == [54, 108]
    assert "resource_use" not in got
    async with AsyncGrid(key=dps.key, book=live.book) as grid:
        history = await (await grid.job(running_id)).use_history()
    assert (history.so_far.used_cpus, history.cpus) == (0.9, [0.9, 0.9])


async def test_verification_offline_and_with_a_node(
    dps: Dps, live: Live, running_id: int, receipt: Path, provider: Party, tmp_path: Path
) -> None:
    whole = await dps.run("receipt", "verify", receipt)
    said = f"job {running_id}: signed by its provider {provider.address}"
    assert (whole.status, whole.out, whole.err) == (0, f"{said}, and the chain says the same.\n", "")
    offline = await dps.run("receipt", "verify", receipt, "--offline")
    assert (offline.status, offline.out) == (0, f"{said}; not compared with chain {live.grid.book.chain_id}.\n")
    altered = tmp_path / "altered.json"
    altered.write_bytes(receipt.read_bytes().replace(b'"billed":1', b'"billed":2'))
    refused = await dps.run("receipt", "verify", altered, "--offline")
    assert (refused.status, refused.out) == (1, "")
    assert "not signed by its provider" in refused.err
    missing = await dps.run("receipt", "verify", tmp_path / "none.json")
    assert missing.status == 2, "1 says that a receipt is not true"
    assert "none.json cannot be read: No such file or directory." in missing.err


def test_each_of_200_altered_bytes_of_a_real_receipt_makes_it_fail(receipt: Path) -> None:
    data, chance = receipt.read_bytes(), random.Random(43)
    assert read_receipt(data).receipt.evidence.slurm_id
    for place in chance.sample(range(len(data)), 200):
        with pytest.raises(InputError):
            read_receipt(data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :])


async def test_a_signed_lie_is_seen_on_chain(dps: Dps, live: Live, receipt: Path, provider: Party) -> None:
    contents = read_receipt(receipt.read_bytes()).receipt
    account = provider.writer.sender.wallet.account
    money = contents.money.model_copy(update={"paid_wei": contents.money.cost_wei, "cut_wei": "0"})
    receipt.write_bytes(sign_receipt(account, contents.model_copy(update={"money": money})))
    assert (await dps.run("receipt", "verify", receipt, "--offline")).status == 0
    refused = await dps.run("receipt", "verify", receipt)
    assert (refused.status, "the chain says otherwise: payment, cut." in refused.err) == (1, True)
    stranger = live.grid.new_key("stranger").account
    forged = contents.model_copy(update={"provider": stranger.address})
    receipt.write_bytes(sign_receipt(stranger, forged))
    refused = await dps.run("receipt", "verify", receipt)
    assert (refused.status, "did not settle job" in refused.err) == (1, True)


@pytest.mark.usefixtures("receipt")
async def test_usage_has_the_bill_of_the_job(
    dps: Dps, live: Live, running_id: int, chain: Chain, provider: Party, tmp_path: Path
) -> None:
    cost = (await chain.job(running_id)).final_cost_wei
    shown = await dps.run("usage", "--by", "name")
    assert (shown.status, shown.err) == (0, ""), shown
    assert re.search(rf"^hello-world +1 +1 +{format_credits(cost)} ", shown.out, re.M), shown.out
    by_cluster = json.loads((await dps.run("usage", "--by", "cluster", "--json")).out)
    assert [(row["cluster"], row["cost_wei"]) for row in by_cluster["rows"]] == [
        (f"alpha ({provider.address})", str(cost))
    ] or by_cluster["rows"][0]["cluster"] == "alpha"
    assert (await dps.run("usage", "-o", "usage.parquet")).out == "1 job written to usage.parquet\n"
    assert int(pd.read_parquet(tmp_path / "usage.parquet").cost_wei[0]) == cost
    assert format_credits(cost) in (await dps.run("usage", "--format", "csv")).out
    past = await dps.run("usage", "--from", "2020-01-01", "--to", "2020-02-01")
    assert re.search(r"^total +0 +0 +0 +0$", past.out, re.M)
    wrong = await dps.run("usage", "--by", "year")
    assert (wrong.status, "is no kind of groups" in wrong.err) == (2, True)
    async with AsyncGrid(dps.key, live.book) as grid:
        frame = await grid.usage(by="month")
    assert list(frame.cost_wei) == [cost]


async def test_another_customer_gets_no_receipt(dps: Dps, live: Live, running_id: int, receipt: Path) -> None:
    other = live.grid.new_key(f"other-{running_id}")
    assert isinstance(other, Wallet)
    refused = await replace(dps, key=live.grid.keys / f"other-{running_id}").run("job", "receipt", str(running_id))
    assert (refused.status, "has no part in job" in refused.err) == (1, True)


def test_the_client_gives_the_receipt(dps: Dps, live: Live, running_id: int, receipt: Path, tmp_path: Path) -> None:
    with OpenGrid(dps.key, live.book) as grid:
        found = grid.job(running_id).receipt()
        assert found.data == receipt.read_bytes()
        assert (found.job_id, found.minutes, found.customer) == (running_id, 1, grid.address)
        assert found.cost == grid.job(running_id).bill.cost
        assert found.save(tmp_path / "r.txt").read_text() == found.text
        assert found.save(tmp_path / "r.json").read_bytes() == found.data
