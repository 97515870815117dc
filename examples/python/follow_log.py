"""Submit two jobs at once, and print the output of both while they run."""

import asyncio

from deepgrid import AsyncGrid


async def run(grid: AsyncGrid, name: str) -> None:
    job = await grid.submit("hello-world.yaml", credits=100, name=name)
    async for line in job.logs(follow=True):
        print(f"{name}: {line.text}")
    await (await job.wait()).check()


async def main() -> None:
    async with AsyncGrid() as grid:
        await asyncio.gather(run(grid, "first"), run(grid, "second"))


asyncio.run(main())
