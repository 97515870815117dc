"""Why a job waits, in one sentence that is short for any number of clusters; and its place in the line. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from deepgrid.billing.credits import format_credits
from deepgrid.lifecycle.job import Asked, Prefer
from deepgrid.scheduling.fit import Lack
from deepgrid.scheduling.market import Waiting

TOO_MUCH = "it is compared with the clusters in a later round: pending jobs ask for too many different things"
MOST_PARTS = 8  # of a sentence
MOST_SHOWN = 60  # characters of a condition, which is a customer's text


@dataclass(frozen=True, slots=True)
class Count:
    """A number of clusters, and what holds for them: `clusters lack 8 GPUs`, `cluster lacks 8 GPUs`."""

    clusters: int
    many: str
    one: str


def lacking(asked: Asked, what: Lack, clusters: int) -> Count:
    """Return the count of clusters whose nodes do not hold the job."""
    cpus = asked.ntasks * asked.cpus_per_task
    task_mem = asked.cpus_per_task * asked.mem_per_cpu_mb
    words = {
        Lack.SENSE: "any job without tasks or CPUs",
        Lack.CPUS: f"{cpus} CPUs",
        Lack.GPUS: f"{asked.gpus} GPUs",
        Lack.MEMORY: f"{asked.ntasks * task_mem} MB of memory",
        Lack.TASKS: f"nodes for {asked.ntasks} tasks of {asked.cpus_per_task} CPUs and {task_mem} MB",
        Lack.REACH: f"{asked.gpus} GPUs on the nodes of {asked.ntasks} tasks",
    }[what]
    return Count(clusters, f"lack {words}", f"lacks {words}")


def unmet(condition: str, clusters: int) -> Count:
    """Return the count of clusters that do not meet a condition on labels."""
    shown = condition if len(condition) <= MOST_SHOWN else condition[:MOST_SHOWN] + "..."
    return Count(clusters, f"have no label {shown}", f"has no label {shown}")


def too_expensive(clusters: int) -> Count:
    """Return the count of clusters where the credits do not buy the wanted minutes."""
    return Count(clusters, "are too expensive", "is too expensive")


def above_ceiling(clusters: int, ceiling_wei: int) -> Count:
    """Return the count of clusters above the highest price that the customer accepts.

    Without one (0), the job accepts the prices at its request.
    """
    if not ceiling_wei:
        return Count(clusters, "raised their prices after the request", "raised its prices after the request")
    words = f"above the ceiling of {format_credits(ceiling_wei)} credits per minute"
    return Count(clusters, f"are {words}", f"is {words}")


def refused_count(clusters: int) -> Count:
    """Return the count of clusters whose provider gave the job back."""
    return Count(clusters, "gave it back lately", "gave it back lately")


def full(clusters: int) -> Count:
    """Return the count of clusters that could run it, and have no room soon enough."""
    return Count(clusters, "are full", "is full")


def kept_count(clusters: int) -> Count:
    """Return the count of clusters with room that is kept for jobs before this one."""
    words = "kept for jobs before it"
    return Count(clusters, f"are {words}", f"is {words}")


def cancelled_often(until: int) -> str:
    """Return the reason for a customer whose jobs wait because of its cancels."""
    at = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"you cancelled several jobs that kept a cluster from others; your jobs wait until {at}"


def choice_reason(choices: int, prefer: Prefer) -> str:
    """Return why a cluster was chosen among those where the job could start soon."""
    if choices == 1:
        return "the only cluster where it can start soon"
    by = {Prefer.PRICE: ", by price first", Prefer.START: ", by start first", Prefer.SPEED: ", by speed first"}
    return f"the best of {choices} clusters where it can start soon{by.get(prefer, '')}"


def sentence(counts: Iterable[Count]) -> str:
    """Return the counts as one sentence, largest first: `312 clusters lack 8 GPUs, 40 are too expensive`."""
    shown = sorted((one for one in counts if one.clusters), key=lambda one: -one.clusters)
    parts = []
    for number, count in enumerate(shown[:MOST_PARTS]):
        noun = ("" if number else " cluster") if count.clusters == 1 else ("" if number else " clusters")
        parts.append(f"{count.clusters}{noun} {count.one if count.clusters == 1 else count.many}")
    more = sum(count.clusters for count in shown[MOST_PARTS:])
    return ", ".join(parts) + (f", {more} for other reasons" if more else "")


def line(waiting: Waiting) -> str:
    """Return the place in the line: `3rd in line, 2 jobs of others first; your share of CPUs is 41 %; ...`."""
    if not waiting.position:
        return ""
    others = waiting.ahead_of_others
    words = f"{_ordinal(waiting.position)} in line, {others} {'job' if others == 1 else 'jobs'} of others first"
    words += f"; your share of {waiting.resource} is {waiting.share:.0%}".replace("%", " %")
    if waiting.estimated_start and waiting.cluster:
        at = datetime.fromtimestamp(waiting.estimated_start, UTC)
        words += f"; estimated start {at:%Y-%m-%d %H:%M} UTC at {waiting.cluster}"
    return words


def _ordinal(number: int) -> str:
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
