"""Forms that move credits: top up a job, transfer credits, set the allowance."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.errors import InputError
from deepgrid.plain_text import plain
from deepgrid.tui.screens.form import Confirmation, Field, Form
from deepgrid.tui.widgets.text_pane import Line, pair
from deepgrid.tui.words import exact, span

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.tui.overview import ContractTerms


def amount_of(text: str) -> Decimal:
    """Return a typed amount. Raises InputError."""
    from deepgrid.client.job_values import credits_of, wei_of

    if not text:
        raise InputError("Type an amount of credits.")
    return credits_of(wei_of(text))


class MoneyForm(Form):
    """A form with an amount."""

    @property
    def terms(self) -> ContractTerms:
        """The grid's terms. Raises InputError while they are unknown."""
        if self.live is None or self.live.terms is None:
            raise InputError("The grid's contract is not known yet.")
        return self.live.terms

    def amount(self) -> Decimal:
        """Return the typed amount. Raises InputError."""
        amount = amount_of(self.value("amount"))
        if not amount:
            raise InputError("Type an amount above 0.")
        return amount


class TopUpForm(MoneyForm):
    """Buys more time for a job."""

    def __init__(self, job: AsyncJob) -> None:
        super().__init__()
        self._job = job
        self.HEAD = f"Top up job {job.id} ({plain(job.name)})"

    def fields(self) -> Sequence[Field]:
        return [Field("amount", "credits", "credits to lock in addition, such as 100 or 0.5")]

    def meaning(self) -> list[Line]:
        job = self._job
        lines = [
            pair("locked", f"{exact(job.locked)} credits"),
            pair("rate", f"{exact(job.rate or Decimal(0))} credits per minute"),
        ]
        if self.value("amount"):
            amount = self.amount()
            lines.append(pair("left", f"{exact(self.left_after(amount))} credits stay with you"))
            lines.append(pair("buys", self._time(amount)))
            lines.append(pair("contract", self.terms.contract))
        return [*lines, pair("note", "What the job does not use is returned.")]

    def _time(self, amount: Decimal) -> str:
        rate = self._job.rate
        return f"about {span(int(amount / rate) * 60)} more" if rate else "an unknown time"

    def confirmation(self) -> Confirmation:
        job, amount = self._job, self.amount()
        left = self.left_after(amount)

        async def send() -> str:
            await job.top_up(amount)
            return f"Job {job.id} has {exact(job.locked)} credits locked now."

        question = (
            f"Lock {exact(amount)} credits more for job {job.id} ({plain(job.name)}) at contract"
            f" {self.terms.contract}? {exact(left)} credits are left. [y/N]"
        )
        return question, f"{exact(amount)} credits for job {job.id}", send


class TransferForm(MoneyForm):
    """Sends credits to another address."""

    HEAD = "Transfer credits"

    def fields(self) -> Sequence[Field]:
        return [
            Field("to", "to", "address of the receiver: 0x and 40 digits"),
            Field("amount", "credits", "credits to send, such as 100 or 0.5"),
        ]

    def meaning(self) -> list[Line]:
        lines = []
        if self.value("to"):
            lines.append(pair("receiver", self._receiver()))
        if self.value("amount"):
            lines.append(pair("left", f"{exact(self.left_after(self.amount()))} credits stay with you"))
            lines.append(pair("contract", self.terms.credit))
        return [*lines, pair("note", "A transfer cannot be undone.")]

    def _receiver(self) -> str:
        from deepgrid.client.wallet import checked_address

        return checked_address(self.value("to"))

    def confirmation(self) -> Confirmation:
        receiver, amount = self._receiver(), self.amount()
        left, wallet = self.left_after(amount), self.grid_app.grid.wallet

        async def send() -> str:
            transaction = await wallet.transfer(receiver, amount)
            return f"Sent {exact(amount)} credits: transaction {transaction}"

        question = (
            f"Send {exact(amount)} credits to {receiver} by contract {self.terms.credit}?"
            f" {exact(left)} credits are left. This cannot be undone. [y/N]"
        )
        return question, f"{exact(amount)} credits to {receiver}", send


class AllowanceForm(MoneyForm):
    """Says how many credits the grid may lock."""

    HEAD = "Allowance of the grid"

    def fields(self) -> Sequence[Field]:
        return [Field("amount", "credits", "credits that the grid may lock in all; 0 takes it back")]

    def amount(self) -> Decimal:
        return amount_of(self.value("amount"))

    def meaning(self) -> list[Line]:
        account = self.live.account if self.live else None
        balances = [("now", account.allowance), ("you have", account.credits)] if account else []
        lines = [pair(name, f"{exact(credits)} credits") for name, credits in balances]
        if self.value("amount"):
            lines.append(pair("then", f"{exact(self.amount())} credits"))
            lines.append(pair("contract", self.terms.contract))
        why = "Jobs with delegated spending are topped up from it. Each submission sets what it needs by itself."
        return [*lines, pair("note", why)]

    def confirmation(self) -> Confirmation:
        amount, wallet = self.amount(), self.grid_app.grid.wallet

        async def send() -> str:
            await wallet.set_allowance(amount)
            return f"The grid may lock {exact(amount)} credits."

        question = f"Let contract {self.terms.contract} lock up to {exact(amount)} of your credits? [y/N]"
        return question, f"the allowance of {exact(amount)} credits", send
