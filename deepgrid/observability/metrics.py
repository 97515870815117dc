"""Prometheus metrics and liveness of a supervisor. Each session has its own registry.

Counting happens in memory. Values that need a request (gas balance, spool) are set by the code that sent it.
"""

from __future__ import annotations

import math
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from deepgrid.billing.credits import WEI_PER_CREDIT
from deepgrid.billing.usage.capacity import NOTHING, Capacity
from deepgrid.chain.node.node import Block
from deepgrid.chain.node.node_errors import NodeRefused
from deepgrid.errors import ChainError, ConfigurationError, GridError, SlurmUnreachable
from deepgrid.lifecycle.job import Job, JobKey, Provider
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus

WEI_PER_COIN = 10**18
SUBMIT_BUCKETS_S = (0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 3600)
# The supervisor may have been down before a settlement.
SETTLE_BUCKETS_S = (0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 30, 60, 120, 300, 900, 3600, 21600, 86400)


class Need(Enum):
    """A service that a supervisor needs. The value is the subject of a sentence."""

    LOGIN = "The login node"
    SLURM = "Slurm"
    CHAIN = "The chain's node"
    BLOCKS = "The chain as it is followed"
    PREFECT = "Prefect's API"


ESSENTIAL = frozenset({Need.LOGIN, Need.SLURM, Need.CHAIN, Need.BLOCKS})  # jobs are carried without Prefect too


@dataclass(slots=True)
class _Sign:
    at: float  # by the monotonic clock, which no time server changes
    unix: float = 0.0
    fault: str = ""


class Liveness:
    """The last answer of each need. A need that never answered gets the same patience as one that stopped answering."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, patience_s: float = 120.0) -> None:
        self.patience_s = patience_s
        self._clock = clock
        needs = set(Need) - {Need.BLOCKS}
        self._signs: dict[Need, _Sign] = {need: _Sign(clock()) for need in needs}

    def note(self, need: Need, error: GridError | None = None) -> None:
        """Record an answer, or a failure with `error`."""
        if error is not None:
            self._signs.setdefault(need, _Sign(self._clock())).fault = error.message
        else:
            self._signs[need] = _Sign(self._clock(), time.time())

    @contextmanager
    def expecting(self, need: Need) -> Iterator[None]:
        """Require answers of `need` while the context lasts."""
        self._signs[need] = _Sign(self._clock())
        try:
            yield
        finally:
            self._signs.pop(need, None)

    def last(self, need: Need) -> float:
        """Unix time of its last answer; 0 for never."""
        sign = self._signs.get(need)
        return sign.unix if sign else 0.0

    def well(self, need: Need) -> bool:
        """Return whether the last request was answered."""
        sign = self._signs.get(need)
        return sign is not None and sign.unix > 0 and not sign.fault

    def complaints(self) -> list[str]:
        """Return a sentence for each essential need that has not answered for `patience_s`."""
        now = self._clock()
        silent = [
            (need, sign) for need, sign in self._signs.items() if need in ESSENTIAL and now - sign.at > self.patience_s
        ]
        return [
            f"{need.value} has not answered for {now - sign.at:.0f} s{': ' + sign.fault if sign.fault else '.'}"
            for need, sign in silent
        ]


class ChainMetrics(Collector):
    """Metrics of the chain's node, of the gas money of a `role`, and of earnings. `prefix` begins their names.

    A subclass registers itself when its own metrics are complete.
    """

    def __init__(self, prefix: str, role: str) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self._calls = counter(f"{prefix}_rpc_calls", "Requests to the chain's node.")
        self._errors = counter(f"{prefix}_rpc_errors", "Exchanges with the chain's node that failed.", ["reason"])
        self._block = gauge(f"{prefix}_block", "Block up to which the chain was followed.")
        words = f"Gas money of the {role} in coins of 10^18 wei; a float, so wei beyond 16 digits are lost."
        self._gas = gauge(f"{prefix}_gas_coins", words)
        self._gas.set(math.nan)  # not read yet: 0 would raise an alert
        words = "Credits paid to providers for jobs that ended while this process ran; a float, so digits are lost."
        self._paid = counter(f"{prefix}_paid_credits", words)
        self._cut = counter(f"{prefix}_cut_credits", "Credits kept as the platform's cut of these jobs; a float.")
        self._offered = gauge(f"{prefix}_offered_capacity", "CPUs, MB and GPUs of offers in force.", ["resource"])
        self._used_name = f"{prefix}_used_capacity"
        for reason in ("unreachable", "refused"):  # make the labels known before their first event
            self._errors.labels(reason)
        ProcessCollector(registry=self.registry)

    def asked(self, requests: int, error: ChainError | None) -> None:
        """Count a batch of requests to the chain's node, and its error. A revert by a contract is an answer."""
        self._calls.inc(requests)
        if error is not None and not (isinstance(error, NodeRefused) and error.data is not None):
            self._errors.labels("refused" if isinstance(error, NodeRefused) else "unreachable").inc()

    def set_gas_balance(self, wei: int) -> None:
        """Record the balance that pays for gas."""
        self._gas.set(wei / WEI_PER_COIN)

    def earned(self, job: Job) -> None:
        """Count the payment of a job that ended just now."""
        cut_wei = job.final_cost_wei * job.cut_percent // 100
        self._paid.inc((job.final_cost_wei - cut_wei) / WEI_PER_CREDIT)
        self._cut.inc(cut_wei / WEI_PER_CREDIT)

    def offers(self, providers: Iterable[Provider]) -> None:
        """Record what the providers offer now."""
        found = (Capacity.of_nodes(one.hardware) for one in providers if one.in_force)
        for resource, amount in asdict(sum(found, start=NOTHING)).items():
            self._offered.labels(resource).set(amount)

    def used(self, jobs: Iterable[Job]) -> GaugeMetricFamily:
        """Return the metric of what these jobs use, as far as they run."""
        running = (Capacity.of_job(one.definition) for one in jobs if one.status is JobStatus.RUNNING)
        words = "CPUs, MB and GPUs of running jobs."
        return family_of(self._used_name, words, "resource", asdict(sum(running, start=NOTHING)))


class Metrics(ChainMetrics):
    """Counters, gauges and histograms of one session, and its liveness."""

    def __init__(self) -> None:
        super().__init__("deepgrid", "provider")
        self.liveness = Liveness()
        self._hot: dict[int, Job] = {}
        self._claimable = 0
        self.epoch: Callable[[], int | None] = lambda: None  # of this process's leadership; set by the session
        self.carried: Callable[[], Mapping[JobKey, Phase]] = dict  # claims that carriers drive; set by the session
        counter, histogram = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        words = "From a job's claim to Slurm's acceptance, in seconds."
        self._submit = histogram("deepgrid_claim_to_sbatch_seconds", words, buckets=SUBMIT_BUCKETS_S)
        words = "From a job's end at Slurm to its settlement on chain, in seconds."
        self._settle = histogram("deepgrid_end_to_settled_seconds", words, buckets=SETTLE_BUCKETS_S)
        self._settled = counter("deepgrid_settled_jobs", "Jobs settled by this process.", ["state"])
        self._ssh = counter("deepgrid_ssh_commands", "Commands on the login node.")
        self._ssh_errors = counter("deepgrid_ssh_errors", "Commands on the login node without an answer.", ["reason"])
        words = "Completion records that wait, of carried claims and of others."
        self._spool = Gauge("deepgrid_spool_records", words, ["claim"], registry=self.registry)
        words = "Nodes of the partition: usable, and those that take no jobs, such as drained ones."
        self._nodes = Gauge("deepgrid_nodes", words, ["state"], registry=self.registry)
        for reason in ("unreachable", "refused"):
            self._ssh_errors.labels(reason)
        for status in JobStatus:
            if status.cold:
                self._settled.labels(status.words)
        self.registry.register(self)

    # -- hooks -------------------------------------------------------------------------------

    def ran(self, error: GridError | None) -> None:
        """Count a command on the login node, and its error."""
        self._ssh.inc()
        if error is not None:
            self._ssh_errors.labels(_reason(error)).inc()
        self.liveness.note(Need.LOGIN, error)

    def asked(self, requests: int, error: ChainError | None) -> None:
        """Count as `ChainMetrics` does. A refusal shows that the node lives."""
        super().asked(requests, error)
        self.liveness.note(Need.CHAIN, None if isinstance(error, NodeRefused) else error)

    def followed(self, head: Block | None) -> None:
        """Record that the chain was followed, up to this block if it is known."""
        if head is not None:
            self._block.set(head.number)
        self.liveness.note(Need.BLOCKS)

    def saw(self, jobs: Iterable[Job], address: str, claimable: int) -> None:
        """Record changed jobs of the provider `address`, which are counted by state, and the length of its queue."""
        self._claimable = claimable
        for job in jobs:
            was_hot = self._hot.pop(job.id, None) is not None
            if job.provider == address and job.status.hot:
                self._hot[job.id] = job
            elif job.provider == address and was_hot:
                self.earned(job)

    def submitted(self, key: JobKey) -> None:
        """Record that Slurm accepted the claim's job just now."""
        self._submit.observe(max(0.0, time.time() - key.claimed_at))

    def settled(self, status: JobStatus, ended_at: int | None) -> None:
        """Record that a job was settled just now. `ended_at` is its end at Slurm, if it ended there."""
        self._settled.labels(status.words).inc()
        if ended_at is not None:
            self._settle.observe(max(0.0, time.time() - ended_at))

    def spooled(self, comments: Iterable[str]) -> None:
        """Count the records in the spool, given the comments of all of them."""
        ours = {key.comment for key in self.carried()}
        tally = Tally("carried" if comment in ours else "unknown" for comment in comments)
        for claim in ("carried", "unknown"):
            self._spool.labels(claim).set(tally[claim])

    def saw_nodes(self, usable: int, nodes: int) -> None:
        """Record how many nodes the partition has, and how many of them take jobs."""
        self._nodes.labels("usable").set(usable)
        self._nodes.labels("unusable").set(nodes - usable)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics that are computed at each scrape. The registry calls this."""
        states = tally_of((one.status.words for one in self._hot.values()), (one.words for one in JobStatus if one.hot))
        states[JobStatus.META_SCHEDULED.words] = self._claimable
        yield family_of("deepgrid_jobs", "Hot jobs of this provider by state on chain.", "state", states)
        yield self.used(self._hot.values())
        carried, epoch = self.carried(), self.epoch()
        phases = tally_of((phase.value for phase in carried.values()), (one.value for one in Phase))
        yield family_of("deepgrid_slurm_jobs", "Carried claims by what Slurm says of them.", "phase", phases)
        yield GaugeMetricFamily("deepgrid_leader", "1 while this process leads its provider.", epoch is not None)
        yield GaugeMetricFamily("deepgrid_leader_epoch", "Epoch of its leadership, 0 without one.", epoch or 0)
        yield GaugeMetricFamily("deepgrid_carriers", "Carriers alive.", len(carried))
        last = {need.name.lower(): self.liveness.last(need) for need in Need}
        words = "When it last answered, unix seconds; 0 for never."
        yield family_of("deepgrid_last_answer_timestamp_seconds", words, "of", last)
        answers, healthy = self.liveness.well(Need.PREFECT), not self.liveness.complaints()
        yield GaugeMetricFamily("deepgrid_prefect_answers", "1 if Prefect's API answered when last asked.", answers)
        yield GaugeMetricFamily("deepgrid_healthy", "1 while the supervisor can do its work.", healthy)


def tally_of(found: Iterable[str], names: Iterable[str]) -> dict[str, float]:
    """Return how often each name was found, zeros included."""
    tally = Tally(found)
    return {name: tally[name] for name in names}


def family_of(name: str, words: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """Return a gauge with one value per value of `label`."""
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, figure in values.items():
        family.add_metric([value], figure)
    return family


def _reason(error: GridError) -> str:
    if isinstance(error, SlurmUnreachable):
        return "unreachable"
    return "refused" if isinstance(error, ConfigurationError) else "other"
