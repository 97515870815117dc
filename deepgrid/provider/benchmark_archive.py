"""Keeps every result of a cluster's benchmarks for years, on the supervisor's disk.

There is one Parquet file per year with a row per label, and one compressed file per measurement with the program's
output. pyarrow loads slowly, so it is imported when needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gzip
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.trend import Result, results_of
from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder, replace_file
from deepgrid.plain_text import plain

logger = logging.getLogger(__name__)

MOST_OUTPUT_CHARACTERS = 2**20  # of one measurement; the beginning and the end of a longer one are kept
MOST_ROWS = 200_000  # of one year


class BenchmarkArchive:
    """The results of one cluster, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @asynccontextmanager
    async def alone(self, cluster: str, poll_s: float = 1.0) -> AsyncIterator[None]:
        """Keep out other measurements of this cluster, including other processes, while the context lasts.

        Waits for a running one. The system releases the lock of a process that dies.
        """
        with self._lock_file() as file:
            told = False
            while not _try_lock(file.fileno()):
                if not told:
                    logger.info("another benchmark of %s is running, waiting for its end", cluster)
                told = True
                await asyncio.sleep(poll_s)
            yield

    def keep(self, outcome: Outcome, at: int) -> tuple[Result, ...]:
        """Add a measurement of this time (unix seconds), and return its results. The caller must be `alone`.

        Raises ConfigurationError when the disk does not take them.
        """
        moment = datetime.fromtimestamp(at, UTC)
        name = f"{moment:%Y-%m-%dT%H%M%SZ}-{outcome.program}.txt.gz"
        added = results_of(outcome, at, name)
        file = self._file(moment.year)
        try:
            text = _shorten(plain(outcome.evidence.output, keep="\n\t"))
            replace_file(make_private_folder(self.folder / "output") / name, gzip.compress(text.encode()))
            rows = [*_read(file), *map(_row, added)] if file.exists() else [*map(_row, added)]
            _write(file, rows[-MOST_ROWS:])
        except OSError as error:
            raise ConfigurationError(f"The result of {outcome.program} cannot be kept: {error.strerror}.") from None
        return added

    async def read(self) -> tuple[Result, ...]:
        """Return all results, the oldest first. Raises ConfigurationError when a file is damaged."""
        return await asyncio.to_thread(self.results)

    def results(self) -> tuple[Result, ...]:
        """Return the same at once."""
        return tuple(_result(row) for file in sorted(self.folder.glob("results-*.parquet")) for row in _read(file))

    def output(self, name: str) -> str:
        """Return the output of a measurement by its name in a result."""
        return gzip.decompress((self.folder / "output" / Path(name).name).read_bytes()).decode()

    def _lock_file(self) -> IO[bytes]:
        return open(make_private_folder(self.folder) / "lock", "ab")

    def _file(self, year: int) -> Path:
        return self.folder / f"results-{year}.parquet"


def _try_lock(descriptor: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _shorten(text: str) -> str:
    if len(text) <= MOST_OUTPUT_CHARACTERS:
        return text
    half = MOST_OUTPUT_CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"


def _row(result: Result) -> dict[str, Any]:
    """Return the columns of a result. `at` is a time, and `parameters` are JSON."""
    return asdict(result) | {
        "at": datetime.fromtimestamp(result.at, UTC),
        "samples": list(result.samples),
        "parameters": json.dumps(dict(result.parameters), ensure_ascii=False),
    }


def _result(row: dict[str, Any]) -> Result:
    return Result(
        at=int(row["at"].timestamp()),
        program=row["program"],
        key=row["key"],
        value=row["value"],
        samples=tuple(row["samples"]),
        remark=row["remark"],
        parameters=json.loads(row["parameters"]),
        output=row["output"],
    )


def _read(file: Path) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        yield from pyarrow.parquet.read_table(file).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise ConfigurationError(
            f"{file} does not hold results of benchmarks: {str(error)[:100]}.", next_step="Move the file away."
        ) from None


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the file as a whole, so that a crash leaves the old one or the new one."""
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    columns = [("at", pyarrow.timestamp("s", "UTC")), ("program", text), ("key", text), ("value", text)]
    columns += [("samples", pyarrow.list_(pyarrow.float64())), ("remark", text), ("parameters", text), ("output", text)]
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, pyarrow.schema(columns)), content)
    replace_file(file, content.getvalue())
