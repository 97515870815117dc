"""After a restart, exactly the logs of ended jobs are delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.log_shipping import LogShipper
from deepgrid.provider.upkeep import resume_logs
from tests.services.support import ACCOUNTS, DOMAIN, MemoryChain

ADDRESS = ACCOUNTS["provider"].address
NAME = "ab" * 32


def key(job_id: int) -> JobKey:
    return JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, job_id, claimed_at=3)


@dataclass
class Session:
    """The part of a session that `resume_logs` uses."""

    chain: MemoryChain
    logs: LogShipper
    address: str = ADDRESS

    def key_of(self, job: Job) -> JobKey:
        return JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, job.id, job.claimed_at)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_logs_of_jobs_that_are_over_are_ended_and_the_others_wait(tmp_path: Path) -> None:
    over, running, again, elsewhere, unknown = (key(number) for number in range(1, 6))
    journal = ClaimJournal(tmp_path / "alpha.logs.json", like=key(0))
    journal.add([over, running, again, elsewhere, unknown])
    chain = MemoryChain(down=True)
    chain.put(1, NAME, JobStatus.FINISHED)
    chain.put(2, NAME, JobStatus.RUNNING)
    chain.put(3, NAME, JobStatus.RUNNING, claimed_at=9)
    chain.put(4, NAME, JobStatus.RUNNING, provider=ACCOUNTS["other_provider"].address)
    session = Session(chain, LogShipper(None, None, journal=journal))  # type: ignore[arg-type] # it does not run
    resuming = asyncio.create_task(resume_logs(cast(ProviderSession, session), check_again_s=0.01))
    await until(lambda: chain.calls > 1)
    assert session.logs.undelivered == set(journal), "a silent node proves nothing"
    chain.down = False
    await until(lambda: session.logs.undelivered == {running})
    assert set(session.logs._streams) == {over}
    session.logs.follow(running)  # by its carrier
    await asyncio.wait_for(resuming, 60)
