"""The results of a cluster over time: how old a label's value is, and which figures dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from deepgrid.benchmark.labels import DEGRADED, DROP_PERCENT
from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import Program
from deepgrid.lifecycle.job import Label

LAST_RESULTS = 10
FEWEST_RESULTS = 3  # before a drop counts
_FASTER_IF_LESS = ".us"  # the end of the keys of times; all other figures are rates


@dataclass(frozen=True, slots=True)
class Result:
    """One label of one measurement: its samples, and what it rests on. A text has no samples.

    `at` is in unix seconds. `output` names the file with the program's output.
    """

    at: int
    program: str
    key: str
    value: str
    samples: tuple[float, ...] = ()
    remark: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    output: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """A figure that got worse by more than DROP_PERCENT, against the median of the results before it."""

    key: str
    value: float
    usual: float

    @property
    def percent(self) -> float:
        """By how much the cluster got slower, in percent of its usual speed."""
        if self.key.endswith(_FASTER_IF_LESS):
            return 100 * (1 - self.usual / self.value)
        return 100 * (1 - self.value / self.usual)

    @property
    def words(self) -> str:
        """The drop, without a final full stop."""
        return f"{self.key} is {self.value:.2f}, after a median of {self.usual:.2f}: {self.percent:.0f} % slower"


def results_of(outcome: Outcome, at: int, output: str) -> tuple[Result, ...]:
    """Return one result per label of a measurement."""
    evidence = outcome.evidence
    samples = {key: one.values for key, one in evidence.samples.items()}
    return tuple(
        Result(
            at=at,
            program=outcome.program,
            key=label.key,
            value=label.value,
            samples=samples.get(label.key, ()),
            remark="noisy" if label.key in evidence.noisy else "partial" * evidence.is_partial,
            parameters=evidence.parameters,
            output=output,
        )
        for label in outcome.labels
    )


def drops(results: Iterable[Result], keys: Iterable[str]) -> tuple[Drop, ...]:
    """Return the figures among `keys` whose newest result is worse than usual, the worst first.

    Results of another program, such as OSU's after our own ping-pong, are not compared. A noisy figure counts by its
    best sample: the others say more about the load than about the cluster.
    """
    figures: dict[str, list[Result]] = {key: [] for key in keys}
    for one in sorted(results, key=lambda one: one.at):
        if one.samples and one.key in figures:
            figures[one.key].append(one)
    found = []
    for key, (*before, newest) in ((key, row) for key, row in figures.items() if row):
        alike = [one for one in before if one.parameters.get("program") == newest.parameters.get("program")]
        if len(alike) >= FEWEST_RESULTS:
            usual = median(median(one.samples) for one in alike[-LAST_RESULTS:])
            found.append(Drop(key, _value_of(newest), usual))
    return tuple(sorted((one for one in found if one.percent > DROP_PERCENT), key=lambda one: -one.percent))


def _value_of(result: Result) -> float:
    if result.remark != "noisy":
        return float(median(result.samples))
    return min(result.samples) if result.key.endswith(_FASTER_IF_LESS) else max(result.samples)


@dataclass(frozen=True, slots=True)
class MonthFigure:
    """One figure of the results of a month, such as 2026-03 in UTC: the median, the lowest and the highest result."""

    month: str
    key: str
    median: float
    lowest: float
    highest: float
    results: int


def by_month(results: Iterable[Result]) -> tuple[MonthFigure, ...]:
    """Return the figures of each month, the newest month first. A result counts by the median of its samples."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in results:
        if one.samples:
            found.setdefault((day(one.at)[:7], one.key), []).append(float(median(one.samples)))
    newest_first = sorted(sorted(found), key=lambda pair: pair[0], reverse=True)
    rows = ((month, key, found[month, key]) for month, key in newest_first)
    return tuple(MonthFigure(month, key, median(row), min(row), max(row), len(row)) for month, key, row in rows)


def with_drops(labels: tuple[Label, ...], found: Sequence[Drop]) -> tuple[Label, ...]:
    """Return the labels with the worst drop among them, or without that label if there is none."""
    others = [label for label in labels if label.key != DEGRADED]
    marks = [Label(DEGRADED, found[0].key)] if found else []
    return tuple(sorted([*others, *marks], key=lambda label: label.key))


def last_measured_at(results: Iterable[Result]) -> dict[str, int]:
    """Return when each label was measured last, in unix seconds."""
    found: dict[str, int] = {}
    for one in results:
        found[one.key] = max(one.at, found.get(one.key, 0))
    return found


def last_days(outcomes: Iterable[Outcome], results: Iterable[Result]) -> dict[Program, str]:
    """Return the day of the last result of each program that failed, if it has one."""
    newest = {one.program: one.at for one in sorted(results, key=lambda one: one.at)}
    failed = [outcome.program for outcome in outcomes if outcome.problem]
    return {program: day(newest[program]) for program in failed if program in newest}


def day(at: int) -> str:
    """Return a day such as 2026-11-21, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def age_days(at: int, now: int) -> int:
    """Return whole days since then."""
    return max(0, now - at) // 86400
