"""The operator's rounds as a process of its own, which kills itself with SIGKILL at a point of a round.

Usage: BOOK KEY_FILE STATE POINT. It runs rounds until no job is left to assign or to end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from deepgrid.operator import rounds
from deepgrid.operator.session import OperatorSession, OperatorSettings, follow_jobs, operator_session

POINTS = ("decided", "promised", "sent")  # of a round that assigns jobs, before and after its transaction


def settings_of(book: Path, key_file: Path, state: Path) -> OperatorSettings:
    """Return the settings of an operator without services."""
    return OperatorSettings(book, key_file, state, services_url="http://127.0.0.1:1")


async def run_rounds(session: OperatorSession) -> None:
    """Run rounds until one has nothing to do, each on the news of the chain."""
    done = 1
    while done:
        news = follow_jobs(session)
        await anext(news)
        await news.aclose()  # type: ignore[attr-defined]
        seen = await rounds.read_market(session)
        done = await rounds.assign(session, await rounds.decide(session, seen))
        done += len(await rounds.end_jobs(session, seen))


async def main(book: str, key_file: str, state: str, point: str) -> None:
    async with operator_session(settings_of(Path(book), Path(key_file), Path(state))) as session:
        steps = {
            "decided": (session.store, "promise"),
            "promised": (session.writer, "meta_schedule_jobs"),
            "sent": (session.store, "resolve"),
            "ending": (session.writer, "give_up_jobs"),
        }
        setattr(*steps[point], _die)
        await run_rounds(session)


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
