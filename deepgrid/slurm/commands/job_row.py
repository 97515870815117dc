"""One job, or one run of it, as one source of Slurm shows it."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.billing.entries import NOT_ACCOUNTED, Allocation


@dataclass(frozen=True, slots=True)
class Row:
    """One job, or one run of it, as one source shows it.

    `slurm_id` and `user` (the numeric id of the account) identify the job's owner. Times are unix seconds or None.
    `started_at` is None for a job that never started. `taken_at` is when Slurm accepted or requeued the job, and
    `restarts` counts the requeues before this run. `follows` is True if an earlier accounting record explains a later
    `taken_at`: the job was requeued or resized. Only completion records contain `name` and `comment`, as their hook
    writes each on its own line. `cancelled_by` is the numeric id of the account that cancelled the job; only accounting
    has it, and the resources that the job was `given`. `used_s` is Slurm's count of the run time of a job in the queue.
    `preempted` is whether the controller has started to preempt the job; only the queue has it. `suspended_s` is for
    how long a job was suspended, once it has ended. Queue and accounting are never queried for text that a user can
    choose.
    """

    slurm_id: int
    user: str
    state: str
    started_at: int | None = None
    ended_at: int | None = None
    exit_status: int = 0
    reason: str = ""
    limit_minutes: int | None = None
    restarts: int = 0
    taken_at: int | None = None
    follows: bool = False
    name: str = ""
    comment: str = ""
    nodes: str = ""
    cancelled_by: str = ""
    used_s: int | None = None
    preempted: bool = False
    suspended_s: int = 0
    given: Allocation = NOT_ACCOUNTED

    def may_be_of(self, taken_at: int | None) -> bool:
        """Return whether this can be the job with this id that Slurm accepted at `taken_at`.

        A controller that lost its state reuses ids. A controller with an old state still shows the former jobs.
        """
        if taken_at is None or self.taken_at is None or self.taken_at == taken_at:
            return True
        return self.taken_at > taken_at and (self.restarts > 0 or self.follows)
