"""What customers' jobs kept from others, noted from the changes of the jobs and kept in the operator's store."""

from __future__ import annotations

from collections.abc import Iterable

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.store import OperatorStore
from deepgrid.scheduling.market import SchedulerSettings
from deepgrid.scheduling.past_use import Account, Hold


class UseLedger:
    """An account per customer with past use or cancels.

    An end that is reported again after a restart counts once: it is not later than what the store has.
    """

    def __init__(self, store: OperatorStore, settings: SchedulerSettings) -> None:
        self._store, self._settings = store, settings
        self._accounts = store.accounts()
        self._counted_until = max((one.at for one in self._accounts.values()), default=0)
        self._changed: set[str] = set()

    def accounts(self) -> dict[str, Account]:
        """A copy, for a thread."""
        return dict(self._accounts)

    def note(self, before: Job | None, job: Job, now: float) -> None:
        """Count what a job no longer keeps. `now` is the time of a return, for which the chain has none."""
        was, held = before and Hold.of(before), Hold.of(job)
        if was and was != held:
            self._count(was, job.ended_at or int(now))
        if held and not job.status.hot and (before or job.ended_at > self._counted_until):
            self._count(held, job.ended_at)
            if job.status is JobStatus.CANCELLED and job.has_cancel_request and not job.started_at:
                account = self._account(held.customer)
                self._put(held.customer, account.with_cancel(held, job.ended_at, self._settings.half_life_s))

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

    def _count(self, hold: Hold, until: int) -> None:
        account = self._account(hold.customer).with_hold(hold, until, self._settings.half_life_s)
        self._put(hold.customer, account)

    def _account(self, customer: str) -> Account:
        return self._accounts.get(customer, Account())

    def _put(self, customer: str, account: Account) -> None:
        self._accounts[customer] = account
        self._changed.add(customer)


def holds_of(hot: Iterable[Job]) -> list[Hold]:
    """What assigned, claimed and running jobs keep."""
    return [hold for hold in map(Hold.of, hot) if hold is not None]
