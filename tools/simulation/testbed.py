"""The simulated clusters, and jobs as the chain would have them.

Customers lock the credits for the requested minutes at the most expensive cluster that fits. So each cluster grants at
least the requested minutes, and a cheap one grants more. The granted minutes are Slurm's time limit, as on a real
cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.lifecycle.job import Hardware, Job, JobDefinition, Label, Prices, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.fit import misfit
from tools.simulation.workloads import TraceJob

MILLICREDIT = 10**15
START = 1_700_000_000
"""Unix time at which simulations begin: times of 0 mean "absent"."""


@dataclass(frozen=True, slots=True)
class Site:
    """A simulated provider. All nodes are alike. `speed` divides the run times of the workload.

    Prices are thousandths of a credit per CPU minute and per GPU minute. Memory is free.
    """

    name: str
    nodes: int
    cpus: int
    mem_gb: int
    gpus: int
    cpu_price: int
    gpu_price: int
    speed: float

    @property
    def capacity(self) -> float:
        """Return the number of CPUs, times their speed."""
        return self.nodes * self.cpus * self.speed

    def provider(self, number: int) -> Provider:
        """Return the provider as registered and approved, at the `number`-th address."""
        each = self.nodes
        hardware = Hardware((self.gpus,) * each, (self.cpus,) * each, (1024 * self.mem_gb,) * each)
        prices = Prices(self.gpu_price * MILLICREDIT, self.cpu_price * MILLICREDIT, 0)
        labels = (Label("name", self.name),)
        return Provider(f"0x{number:040x}", hardware, prices, labels, approved=True, banned=False)


SITES = (
    Site("alder", 4, 16, 64, 0, 7, 0, 1.0),
    Site("birch", 2, 32, 128, 0, 8, 0, 1.0),
    Site("cedar", 3, 32, 128, 0, 9, 0, 1.2),
    Site("elm", 1, 64, 256, 0, 10, 0, 1.1),
    Site("fir", 1, 32, 512, 0, 12, 0, 1.2),
    Site("hazel", 1, 32, 128, 4, 11, 200, 1.1),
    Site("larch", 1, 32, 256, 8, 14, 250, 1.4),
    Site("maple", 1, 16, 64, 0, 13, 0, 1.3),
)
"""The clusters of the published results."""
CAPACITY = sum(site.capacity for site in SITES)


def definition_of(job: TraceJob) -> JobDefinition:
    return JobDefinition(job.gpus, job.mem_per_cpu_mb, job.cpus_per_task, job.ntasks, "0x" + "00" * 32)


def chain_job(job: TraceJob, providers: Sequence[Provider]) -> Job | None:
    """Return the job, pending from its submission; None if it fits no provider."""
    definition = definition_of(job)
    rates = [rate_wei_per_minute(definition, p.prices) for p in providers if not misfit(definition, p.hardware)]
    if not rates:
        return None
    minutes = -(-job.requested_s // 60)
    return Job(
        id=job.number, status=JobStatus.PENDING, customer=job.customer, provider=None, definition=definition,
        name="", locked_wei=minutes * max(rates), final_cost_wei=0, submitted_at=START + job.submitted_s,
        assigned_at=0, claimed_at=0, started_at=0, ended_at=0, cancel_requested_at=0, has_cancel_request=False,
        rate_wei_per_minute=0, cut_percent=0, granted_minutes=0, last_refuser=None, delegate_spending=False,
        last_error="", exit_status=0,
    )  # fmt: skip
