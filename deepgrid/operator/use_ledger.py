"""Past use of customers' jobs, counted from the changes of the jobs and kept in the operator's store."""

from __future__ import annotations

from collections.abc import Iterable

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.store import OperatorStore
from deepgrid.scheduling.market import Resources, SchedulerSettings
from deepgrid.scheduling.past_use import Account, Hold


class UseLedger:
    """An account per customer with past use or cancels.

    An end that is reported again after a restart counts once: it is not later than what the store has.
    Reservations are kept in memory only: after a restart they count from the next round on.
    """

    def __init__(self, store: OperatorStore, settings: SchedulerSettings) -> None:
        self._store, self._settings = store, settings
        self._accounts = store.accounts()
        self._counted_until = max((one.at for one in self._accounts.values()), default=0)
        self._changed: set[str] = set()
        self._reserved_since: dict[int, int] = {}  # pending jobs with a reservation
        self._reserved_s: dict[int, int] = {}  # earlier reservations of hot jobs

    def accounts(self) -> dict[str, Account]:
        """Return a copy, for a thread."""
        return dict(self._accounts)

    def note(self, before: Job | None, job: Job, now: float) -> None:
        """Count what a job no longer keeps. `now` is the time of a return, for which the chain has none."""
        was, held = before and Hold.of(before), Hold.of(job)
        if was and was != held:
            self._count(was, job.ended_at or int(now))
        if job.status.hot:
            return
        holds = [(held, job.ended_at)] if held and (before or job.ended_at > self._counted_until) else []
        reserved_until = held.since if held else job.ended_at
        reserved = self._take_reservation(job, reserved_until)
        is_free = job.status is JobStatus.CANCELLED and not job.started_at
        if reserved and is_free:
            holds.append((reserved, reserved_until))
        for hold, until in holds:
            self._count(hold, until)
        if holds and is_free and job.has_cancel_request:
            account = self._account(job.customer)
            self._put(job.customer, account.with_cancel(holds[0][0], job.ended_at, self._settings.half_life_s))

    def note_reservations(self, job_ids: Iterable[int], now: int) -> None:
        """Note which pending jobs reserve their start at a cluster from this round on."""
        ids = set(job_ids)
        for job_id in self._reserved_since.keys() - ids:
            self._end_reservation(job_id, now)
        for job_id in ids:
            self._reserved_since.setdefault(job_id, now)

    def save(self) -> None:
        """Write the changed accounts to the store."""
        if self._changed:
            self._store.put_accounts({one: self._accounts[one] for one in self._changed})
            self._changed = set()

    def forget_negligible(self, now: int) -> None:
        """Forget customers with nothing left to remember."""
        gone = [one for one, own in self._accounts.items() if own.is_negligible(now, self._settings.half_life_s)]
        for one in gone:
            del self._accounts[one]
        self._store.forget_accounts(gone)

    def _end_reservation(self, job_id: int, at: int) -> None:
        if (since := self._reserved_since.pop(job_id, None)) is not None:
            self._reserved_s[job_id] = self._reserved_s.get(job_id, 0) + max(0, at - since)

    def _take_reservation(self, job: Job, until: int) -> Hold | None:
        """Return the resources that an ended job reserved before its assignment; None without a reservation."""
        self._end_reservation(job.id, until)
        kept_s = self._reserved_s.pop(job.id, None)
        return None if kept_s is None else Hold(job.customer, Resources.of(job.definition), until - kept_s)

    def _count(self, hold: Hold, until: int) -> None:
        account = self._account(hold.customer).with_hold(hold, until, self._settings.half_life_s)
        self._put(hold.customer, account)

    def _account(self, customer: str) -> Account:
        return self._accounts.get(customer, Account())

    def _put(self, customer: str, account: Account) -> None:
        self._accounts[customer] = account
        self._changed.add(customer)


def holds_of(hot: Iterable[Job]) -> list[Hold]:
    """Return the resources that assigned, claimed and running jobs keep."""
    return [hold for hold in map(Hold.of, hot) if hold is not None]
