"""Budgets of a customer: the credits that submissions and top-ups may use per day, week or month.

A budget is a promise of this client to its user. `dps`, the Python client and `dps web` of the same Unix account check
it before they lock credits. It does not bind other programs or machines: the allowance binds everybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, RootModel, StringConstraints, ValidationError

from deepgrid.billing.credits import MAX_WEI, format_credits
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.files.file_lock import file_lock
from deepgrid.files.private_files import write_json

FILE = "~/.dps/budgets.json"
SETTLED_FOR_GOOD_S = 600  # after this time, no reorganisation is expected to undo a settlement

Per = Literal["day", "week", "month"]
BINDS = (
    "It binds `dps`, the Python client and `dps web` of this account on this machine. The allowance"
    " (`dps allowance set`) binds everybody. Top-ups of another customer's job do not count."
)


class Budget(BaseModel):
    """Credits in wei, as a text, per period."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    wei: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,78}$")]
    per: Per

    @property
    def words(self) -> str:
        """The budget in words."""
        return f"{format_credits(int(self.wei))} credits per {self.per}"

    def began(self, now: int) -> int:
        """Return the start of the period at the unix time `now`, in UTC."""
        time = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        days = {"day": 0, "week": time.weekday(), "month": time.day - 1}[self.per]
        return int((time - timedelta(days=days)).timestamp())


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The use of a budget: the cost of jobs settled in the period, and the credits that open jobs hold."""

    budget: Budget
    since: int
    spent_wei: int
    held_wei: int

    @property
    def left_wei(self) -> int:
        """The credits in wei that may still be locked."""
        return max(0, int(self.budget.wei) - self.spent_wei - self.held_wei)


def checked_per(text: str) -> Per:
    """Return the kind of period. Raises InputError."""
    for one in get_args(Per):
        if one == text:
            return one  # type: ignore[no-any-return]
    raise InputError(f"{text[:40]!r} is no period of a budget.", next_step=f"Use one of: {', '.join(get_args(Per))}.")


def read_budget(book: AddressBook, customer: str) -> Budget | None:
    """Return the budget of a customer on this grid; None without one. Raises ConfigurationError for a damaged file."""
    return _read().get(_key(book, customer))


def write_budget(book: AddressBook, customer: str, budget: Budget | None) -> None:
    """Set the budget, or remove it. Raises ConfigurationError and InputError."""
    if budget is not None and int(budget.wei) > MAX_WEI:
        raise InputError("The budget is more than the credit contract can hold.")
    kept = {name: one for name, one in _read().items() if name != _key(book, customer)}
    if budget is not None:
        kept[_key(book, customer)] = budget
    try:
        write_json(_file(), {name: one.model_dump() for name, one in kept.items()}, mode=0o600)
    except OSError as error:
        raise ConfigurationError(f"{_file()} cannot be written: {error.strerror}.") from None


class BudgetKeeper:
    """Checks the budget of one customer. It remembers jobs whose cost does not change any more."""

    def __init__(self, chain: Chain, customer: str) -> None:
        self._chain = chain
        self._customer = customer
        self._settled: dict[int, tuple[int, int]] = {}  # by job: when it was settled, and its cost

    async def use(self) -> BudgetUse | None:
        """Return what counts against the budget now; None without one. Raises ChainError."""
        budget = read_budget(self._chain.book, self._customer)
        if budget is None:
            return None
        now, held_wei = await self._chain.next_block_time(), 0
        since, spent_wei = budget.began(now), 0
        unknown = [one for one in await self._chain.jobs_by_customer(self._customer) if one not in self._settled]
        for job in await self._chain.jobs(unknown):
            if job.status.hot:
                held_wei += job.held_wei
            elif job.ended_at + SETTLED_FOR_GOOD_S < now:
                self._settled[job.id] = job.ended_at, job.final_cost_wei
            elif job.ended_at >= since:
                spent_wei += job.final_cost_wei
        spent_wei += sum(cost for ended_at, cost in self._settled.values() if ended_at >= since)
        return BudgetUse(budget, since, spent_wei, held_wei)

    @asynccontextmanager
    async def alone(self, amount_wei: int) -> AsyncIterator[None]:
        """Let one call at a time check the budget and lock credits, of all processes of this account.

        It does nothing without a file of budgets, or if nothing is locked.
        """
        file = _file()
        if not amount_wei or not file.exists():
            yield
            return
        who = hashlib.sha256(_key(self._chain.book, self._customer).encode()).hexdigest()
        async with file_lock(file.with_name(f"budget-{who[:16]}.lock"), "Another submission"):
            yield

    async def require(self, amount_wei: int) -> None:
        """Raise InputError if locking this much would exceed the budget. Also raises ChainError."""
        found = await self.use()
        if found is None or amount_wei <= found.left_wei:
            return
        used, since = format_credits(found.spent_wei + found.held_wei), datetime.fromtimestamp(found.since, UTC)
        raise InputError(
            f"The budget is {found.budget.words}: {used} are spent or locked since {since:%F}, and"
            f" {format_credits(amount_wei)} more do not fit.",
            next_step=f"Lock at most {format_credits(found.left_wei)}, or change it with `dps budget set`.",
        )


def _file() -> Path:
    return Path(FILE).expanduser()


def _key(book: AddressBook, customer: str) -> str:
    return f"{book.chain_id}:{book.meta_scheduler}:{customer}"


def _read() -> dict[str, Budget]:
    try:
        return RootModel[dict[str, Budget]].model_validate_json(_file().read_bytes()).root
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError):
        raise ConfigurationError(
            f"{_file()} does not hold budgets, so nothing is locked.", next_step="Correct the file, or remove it."
        ) from None
