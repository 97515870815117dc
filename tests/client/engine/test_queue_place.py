"""The place of a waiting job: the services give its position, another oracle gives whatever it knows."""

from __future__ import annotations

import pytest

from deepgrid.client import AsyncGrid
from deepgrid.client.display.record import JobEvent, QueuePlace, facts
from deepgrid.client.engine.live import place_in
from deepgrid.client.job_values import ViewMessage
from deepgrid.client.settings import ClientSettings
from deepgrid.errors import ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.handlers import job_queue
from tests.cli.live import EXAMPLE, Party
from tests.client.stage import Customer

JOB = f"0x{7:064x}"


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        (f'{{"{JOB}": {{"status": "meta_scheduled", "position": 2, "length": 3}}}}', QueuePlace(2, 3, False)),
        (f'{{"{JOB}": true, "0x1": null}}', QueuePlace(None, 2, False)),
        (f'{{"{JOB}": {{"position": 4, "length": 3}}}}', QueuePlace(None, 1, False)),
        (f'{{"{JOB}": {{"position": "2", "length": []}}}}', QueuePlace(None, 1, False)),
        ("{}", QueuePlace(None, 0, False)),
    ],
)
def test_what_an_oracle_says(answer: str, place: QueuePlace) -> None:
    assert place_in(answer.encode(), 7, pending=False) == place


@pytest.mark.parametrize("answer", [b"", b"[]", b"\xff", b"<html>", b"[" * 100_000])
def test_nonsense_of_an_oracle(answer: bytes) -> None:
    with pytest.raises(ServiceError):
        place_in(answer, 7, pending=False)


async def test_jobs_know_how_many_are_before_them(customer: Customer, operator: Party, provider: Party) -> None:
    settings = ClientSettings(queue_poll_s=job_queue.FRESH_S / 10)
    async with AsyncGrid(customer.key, customer.book, settings=settings) as grid:
        first, second = [await grid.submit(EXAMPLE, 100) for _ in range(2)]
        for job in (first, second):
            await operator.writer.meta_schedule(job.id, provider.address)
        said: list[JobEvent] = []
        async for event in second.events():
            said.append(event)
            if isinstance(event, ViewMessage):
                break
        assert said[-1].text == "position 2 of 2 in the queue of its cluster"
        record = await second.record()
        assert record.place == QueuePlace(2, 2, pending=False)
        assert ("queue", "position 2 of 2 in the queue of its cluster") in facts(record)
        for _ in range(2):
            await provider.writer.claim_next()
        claimed = await second.record()
        assert (claimed.job.status, claimed.place) == (JobStatus.SCHEDULED, None)
