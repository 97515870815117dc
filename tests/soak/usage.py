"""Resources that the processes of a grid use, read from the kernel and PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import asyncpg

from deployments.onemachine.grid import LocalGrid

MIB, KIB = 1024**2, 1024
DATABASES = ("prefect", "services")


@dataclass(frozen=True)
class Usage:
    """Memory and open files of each process by its name, and bytes of each database."""

    memory_mib: dict[str, float]
    files: dict[str, int]
    databases: dict[str, int]


async def usage(grid: LocalGrid, names: tuple[str, ...]) -> Usage:
    """Return what these processes of the grid take now."""
    pids = {name: pid for name in names if (pid := grid.table.pid(name))}
    return Usage(
        {name: _memory_mib(pid) for name, pid in pids.items()},
        {name: len(list(Path(f"/proc/{pid}/fd").iterdir())) for name, pid in pids.items()},
        {name: await _size(grid, name) for name in DATABASES},
    )


def _memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss_kib = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return round(pss_kib * KIB / MIB, 1)


async def _size(grid: LocalGrid, database: str) -> int:
    connection = await asyncpg.connect(grid.postgres.url(database).replace("+asyncpg", ""))
    try:
        return int(await connection.fetchval("SELECT pg_database_size($1)", database))
    finally:
        await connection.close()
