"""The figures of the benchmarks: read from their output, kept in `docs/explanation/figures.md`, and compared.

A figure of time depends on the machine. So each row has the time of a fixed computation, measured together with the
benchmark in the same run. Two runs are compared by their ratios to it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/explanation/figures.md"
WORSE = 1.15
"""A figure that is worse by more than this ratio is reported."""
ROUNDS = 200_000

HEAD = """# Figures

What the benchmarks measured. `./run bench all` runs them, prints a table against this page, and names each figure that
got worse by more than 15 %. It changes the page only with `--write`. It is generated.

*Reference* is the CPU time of a fixed computation in the same run. Figures of time are compared as
ratios to it. *Load* is the number of programs that wanted a processor meanwhile, on *cores* processors. On a busy
machine rates are too low and waits too long, and CPU time is up to twice as long; memory, gas and bytes hardly change.

| bench | figure | value | reference, ms | load | cores | date |
|---|---|---|---|---|---|---|
"""


class Better(Enum):
    """What is better, and whether the figure depends on the machine's speed."""

    FASTER = "higher, by time"
    SHORTER = "lower, by time"
    SMALLER = "lower"
    LARGER = "higher"


SUFFIXES = (
    ("per_s", Better.FASTER),
    ("_per_cpu_s", Better.FASTER),
    ("_cpu_ms_per_job", Better.SHORTER),
    ("gas_per_job", Better.SMALLER),
    ("bytes_per_job", Better.SMALLER),
    ("kb_per_job", Better.SMALLER),
    ("rpc_per_job", Better.SMALLER),
    ("_mb", Better.SMALLER),
    ("_kb", Better.SMALLER),
    ("_gas", Better.SMALLER),
    ("_s", Better.SHORTER),
    ("_ms", Better.SHORTER),
    ("_us", Better.SHORTER),
    ("_us_per_line", Better.SHORTER),
    ("_steps", Better.SHORTER),
    ("seconds_1m", Better.SHORTER),
    ("seconds_10k_x_1k", Better.SHORTER),
    ("seconds_64_conditions", Better.SHORTER),
    ("jain", Better.LARGER),
    ("_share", Better.SHORTER),
)
"""By the end of a figure's name; the first that fits counts. Other figures are kept and not compared."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a benchmark, with the conditions under which it was measured."""

    bench: str
    name: str
    value: float
    reference_ms: float
    load: float
    cores: int
    date: str

    @property
    def better(self) -> Better | None:
        """Return what is better; None if the figure is not compared."""
        return next((better for suffix, better in SUFFIXES if self.name.endswith(suffix)), None)

    def ratio_to(self, before: Figure) -> float | None:
        """Return how much worse this figure is than an earlier one: 1.2 is 20 % worse. None without a comparison."""
        if self.better is None or not self.value or not before.value:
            return None
        ratio, machine = self.value / before.value, self.reference_ms / before.reference_ms
        match self.better:
            case Better.SHORTER:
                return ratio / machine
            case Better.FASTER:
                return 1 / (ratio * machine)
            case Better.SMALLER:
                return ratio
            case Better.LARGER:
                return 1 / ratio

    @property
    def row(self) -> str:
        """Return the row of the page."""
        cells = (self.bench, self.name, f"{self.value:g}", f"{self.reference_ms:g}", f"{self.load:g}")
        return f"| {' | '.join((*cells, str(self.cores), self.date))} |"


def last_json(output: str) -> dict[str, float]:
    """Return the numbers of a benchmark's last line that is JSON. Raises ValueError without one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            found = json.loads(line)
            return {
                name: value
                for name, value in found.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
    raise ValueError("the benchmark printed no line of JSON")


def read_page(text: str) -> dict[tuple[str, str], Figure]:
    """Return the figures of the page by bench and name."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 7 and cells[0] != "bench":
            bench, name, value, reference_ms, load, cores, date = cells
            found[bench, name] = Figure(bench, name, float(value), float(reference_ms), float(load), int(cores), date)
    return found


def page_of(figures: Mapping[tuple[str, str], Figure]) -> str:
    """Return the page."""
    return HEAD + "".join(f"{figures[key].row}\n" for key in sorted(figures))


def worse(new: Iterable[Figure], before: Mapping[tuple[str, str], Figure]) -> list[tuple[Figure, float]]:
    """Return the figures that got worse by more than WORSE, with their ratios, the worst first."""
    found = []
    for one in new:
        known = before.get((one.bench, one.name))
        ratio = one.ratio_to(known) if known is not None else None
        if ratio is not None and ratio > WORSE:
            found.append((one, ratio))
    return sorted(found, key=lambda pair: -pair[1])


def reference_ms() -> float:
    """Return the CPU milliseconds of a fixed computation: hashes and small integers, as much of our code is."""
    began, digest, total = time.process_time(), b"", 0
    for number in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()
        total += number % 7
    assert total
    return round(1000 * (time.process_time() - began), 1)
