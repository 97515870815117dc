"""Runs the services alone in a process, with a fake chain: `python -m tests.compat.graphql.alone FOLDER`.

Prints the URL, and serves until its input ends. Rate limits are raised: the remaining limits bound the memory.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.services.admission import Limits
from deepgrid.services.admission.limits import Rate
from tests.services.support import starting

MANY = Rate(10_000, 10_000)


async def main(folder: Path) -> None:
    limits = Limits(strangers_per_address=MANY)
    compat = CompatSettings(limits=CompatLimits(submissions_per_address=MANY))
    async with starting(folder) as start:
        print((await start(limits=limits, compat=compat)).url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
