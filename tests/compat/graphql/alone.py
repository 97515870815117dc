"""Runs the services alone in a process, with a fake chain: `python -m tests.compat.graphql.alone FOLDER`.

Prints the URL, and serves until its input ends. Rate limits are raised: the remaining limits bound the memory.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.compat.graphql.support import UNLIMITED, UNLIMITED_COMPAT
from tests.services.support import starting


async def main(folder: Path) -> None:
    async with starting(folder) as start:
        print((await start(limits=UNLIMITED, compat=UNLIMITED_COMPAT)).url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
