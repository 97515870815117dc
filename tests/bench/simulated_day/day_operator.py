"""The operator of a simulated day, as a process: `operator_session`, its follower and the steps of its rounds.

It is the code of `dps operator serve` without Prefect. `./run bench market` measures it with Prefect.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from deepgrid.operator.rounds import assign, decide, end_jobs, read_market, tell
from deepgrid.operator.session import OperatorSession, OperatorSettings, follow_jobs, operator_session

PROVIDERS_EVERY_S = 60.0
LEAST_PAUSE_S = 0.2


async def serve(book: Path, key_file: Path, state: Path) -> None:
    """Assign pending jobs until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with operator_session(OperatorSettings(book, key_file, state)) as session:
        changed = asyncio.Event()
        session.watched = await session.chain.providers_and_records()
        tasks = [asyncio.create_task(part) for part in (_follow(session, changed), _rounds(session, changed))]
        tasks += [asyncio.create_task(_watch(session)), asyncio.create_task(session.notices.serve())]
        waiting = asyncio.create_task(stopped.wait())
        done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
        for one in (*tasks, waiting):
            one.cancel()
        for one in done - {waiting}:
            one.result()


async def _follow(session: OperatorSession, changed: asyncio.Event) -> None:
    async for _ in follow_jobs(session):
        changed.set()


async def _watch(session: OperatorSession) -> None:
    while True:
        await asyncio.sleep(PROVIDERS_EVERY_S)
        session.watched = await session.chain.providers_and_records()


async def _rounds(session: OperatorSession, changed: asyncio.Event) -> None:
    """Hold a round after each change, as the flow `meta_schedule` does."""
    while True:
        await changed.wait()
        changed.clear()
        seen = await read_market(session)
        if not seen.is_empty:
            decision = await decide(session, seen)
            assigned = await assign(session, decision)
            ended = len(await end_jobs(session, seen)) if seen.to_end else 0
            await tell(session, decision, assigned, ended)
        await asyncio.sleep(LEAST_PAUSE_S)


if __name__ == "__main__":
    asyncio.run(serve(*map(Path, sys.argv[1:4])))
