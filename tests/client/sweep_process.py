"""`python -m tests.client.sweep_process KEY_FILE BOOK COUNT`: a sweep in its own process, which tests may kill.

Prints a line when the sweep has started, and at the end the ids of its results as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

from deepgrid.client import AsyncGrid
from tests.cli.live import EXAMPLE

KEY, CREDITS, AT_ONCE = "sweep of 1,000", 100, 50


async def sweep(key_file: str, book: str, count: int) -> list[int]:
    """Run the sweep to its end. Returns the ids of the results in the order of their ends."""
    async with AsyncGrid(key_file, book) as grid:
        jobs = await grid.map(EXAMPLE, [{"N": n} for n in range(count)], credits=CREDITS, at_once=AT_ONCE, key=KEY)
        print("started", flush=True)
        return [job.id async for job in jobs.as_completed()]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(sweep(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
