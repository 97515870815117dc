"""Jobs and providers on chain, as plain values.

Money is an int of wei (1 credit = 10**18 wei), times are unix seconds, memory is MB,
durations are minutes. As on chain, 0 means no time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.lifecycle.states import JobStatus


@dataclass(frozen=True, slots=True)
class Label:
    """A `key=value` pair that describes a provider."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Affinity:
    """A condition on a provider's label; `op` is one of `< <= == >= > != in`."""

    key: str
    op: str
    value: str


class Asked(Protocol):
    """The resources that a job requests. `gpus` is for the whole job."""

    @property
    def ntasks(self) -> int: ...
    @property
    def cpus_per_task(self) -> int: ...
    @property
    def mem_per_cpu_mb(self) -> int: ...
    @property
    def gpus(self) -> int: ...


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """The part of a job definition that is on chain: resources, conditions, and the hash of the whole definition.

    `definition_hash` is the contract's `batchLocationHash`.
    """

    gpus: int
    mem_per_cpu_mb: int
    cpus_per_task: int
    ntasks: int
    definition_hash: str
    storage_type: int = 4
    uses: tuple[Label, ...] = ()
    affinity: tuple[Affinity, ...] = ()

    @property
    def has_private_files(self) -> bool:
        """Whether the grid keeps the job's files encrypted with a key that the grid does not have."""
        return PRIVATE in {one.key for one in self.uses} | {one.key for one in self.affinity}


class Prefer(IntEnum):
    """The property that counts most when a cluster is chosen for a job, numbered as on chain."""

    BALANCED = 0
    PRICE = 1
    START = 2
    SPEED = 3


@dataclass(frozen=True, slots=True)
class Wishes:
    """A customer's conditions for the choice of a cluster for one job.

    `max_rate_wei` is the ceiling of the price per minute, 0 for none. `min_minutes` is the minimum time that the locked
    credits must buy. After `give_up_at` (unix time, 0 for never) a pending job may be cancelled. `after_job` is the job
    that must finish first; 0 for none. With `after_any`, it may end in any way.
    """

    max_rate_wei: int = 0
    min_minutes: int = 1
    give_up_at: int = 0
    prefer: Prefer = Prefer.BALANCED
    after_job: int = 0
    after_any: bool = False


NO_WISHES = Wishes()

# The contract's TIMEOUT_GRACE: for this time, a silent provider may still bill a job that may have run.
HELD_FOR_S = 86_400

# The contract's CANCEL_ANSWER_PERIOD: minutes after it are not billed.
ANSWER_MINUTES = 10

# The contract's TOP_UP_WINDOW_MINUTES: an automatic top-up is possible this long before the end of the bought time.
TOP_UP_WINDOW_MINUTES = 10


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the chain keeps it, with the terms fixed when it was assigned.

    `locked_wei` is the total that was locked for it. `released_wei` is the part that was returned before its end,
    because its provider did not answer a cancel request in time. `exit_status` is Slurm's wait status (768 for exit
    code 3). `granted_minutes` is floor(locked / rate), 0 while no provider is assigned. `fee_minutes` is the minimum
    bill if it is cancelled while it runs.
    """

    id: int
    status: JobStatus
    customer: str
    provider: str | None
    definition: JobDefinition
    name: str
    locked_wei: int
    final_cost_wei: int
    submitted_at: int
    assigned_at: int
    claimed_at: int
    started_at: int
    ended_at: int
    cancel_requested_at: int
    has_cancel_request: bool
    rate_wei_per_minute: int
    cut_percent: int
    granted_minutes: int
    last_refuser: str | None
    delegate_spending: bool
    last_error: str
    exit_status: int
    pending_top_up_wei: int = 0  # part of `locked_wei` that the provider has not seen yet
    wishes: Wishes = Wishes()
    released_wei: int = 0
    fee_minutes: int = 0

    @property
    def held_wei(self) -> int:
        """Wei that the contract still holds for it."""
        return self.locked_wei - self.released_wei if self.status.hot else 0

    @property
    def returned_wei(self) -> int:
        """Wei that were returned to the customer so far."""
        return self.released_wei if self.status.hot else self.locked_wei - self.final_cost_wei

    @property
    def held_until(self) -> int:
        """Unix time from which another cancel request returns the rest without a report; 0 without a cancel request."""
        return self.cancel_requested_at + HELD_FOR_S if self.has_cancel_request and self.status.hot else 0


@dataclass(frozen=True, slots=True)
class Hardware:
    """Nodes of a provider's partition. The tuples have one figure per node."""

    gpus_per_node: tuple[int, ...]
    cpus_per_node: tuple[int, ...]
    mem_per_node_mb: tuple[int, ...]

    @property
    def nodes(self) -> int:
        return len(self.cpus_per_node)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in wei per minute: per GPU, per CPU and per MB of memory."""

    gpu_wei_per_minute: int
    cpu_wei_per_minute: int
    mem_wei_per_mb_minute: int


@dataclass(frozen=True, slots=True)
class Provider:
    """A registered provider. `approved` is False while its first proposal waits."""

    address: str
    hardware: Hardware
    prices: Prices
    labels: tuple[Label, ...]
    approved: bool
    banned: bool
    waiting_for_approval: bool = False

    @property
    def name(self) -> str:
        """The cluster's `name` label, or its address if it has no name."""
        return next((label.value for label in self.labels if label.key == "name"), self.address)

    @property
    def in_force(self) -> bool:
        """Whether it may be assigned jobs and claim them."""
        return self.approved and not self.banned


@dataclass(frozen=True, slots=True)
class JobKey:
    """Identity of one claim of one job: the idempotency key of every side effect at the provider."""

    chain_id: int
    contract: str
    job_id: int
    claimed_at: int

    @property
    def name(self) -> str:
        """Slurm job name, for people. The comment, not the name, distinguishes claims of several grids."""
        return f"dg-{self.job_id}"

    @property
    def names(self) -> tuple[str, str]:
        """Both names that the claim's job can have. Earlier releases used the id as 32 bytes in hex."""
        return self.name, f"0x{self.job_id:064x}"

    @property
    def comment(self) -> str:
        """Slurm comment. It identifies the grid, the job and the claim."""
        return f"deepgrid:{self.chain_id}:{self.contract[2:10].lower()}:{self.job_id}:{self.claimed_at}"

    @property
    def folder(self) -> str:
        """Name of the job's folder on the login node."""
        return f"{self.chain_id}-{self.contract[2:10].lower()}-{self.job_id}-{self.claimed_at}"

    def of_same_grid(self, name: str) -> JobKey | None:
        """Return the claim with this folder or Slurm comment; None if it is from another chain or contract."""
        found = re.fullmatch(r"(?:deepgrid:)?\d+[-:][0-9a-f]{8}[-:](\d+)[-:](\d+)", name)
        if found is None:
            return None
        key = JobKey(self.chain_id, self.contract, int(found[1]), int(found[2]))
        return key if name in (key.folder, key.comment) else None
