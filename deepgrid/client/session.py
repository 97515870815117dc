"""A customer's session on the grid, and the steps of a submission.

The steps are, in this order: read the order, check that it can be paid, store its definition, allow
the credits, request the job. The definition's hash is new for every submission: it is the idempotency key of the
request. A repeated request with the same hash finds the job that exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deepgrid.billing.credits import format_credits
from deepgrid.chain.batches import Request
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.contract_errors import too_large
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.client.quotes import check_reach
from deepgrid.client.spending.budgets import BudgetKeeper
from deepgrid.errors import ChainError, ContractError, InputError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.order import Order
    from deepgrid.services.client import ServicesClient

T = TypeVar("T")

NOT_CLAIMED = "RunningScheduledStatusOnly"  # names of the contract's errors
TOO_MUCH_TEXT = "BlobTooLong"
RECENT_JOBS = 50  # of one customer, among which `find` looks


@dataclass(frozen=True)
class CustomerSettings:
    """Settings of a customer.

    Attributes:
        key_file: File of the customer's private key. Only its owner may be able to read it.
        book: Address book of the grid. None means the default that `AddressBook.load` describes.
        services_url: URL of the services. Empty means the URL in the address book.
    """

    key_file: Path
    book: Path | None = None
    services_url: str = ""


class CustomerSession:
    """An open session of one customer. Use `customer_session` to open one.

    Attributes:
        address: The customer's address.
        chain: Reads jobs, providers and balances.
        writer: Sends transactions.
        purse: What can be locked, and the allowance for it.
    """

    def __init__(self, chain: Chain, wallet: Wallet, services_url: str = "") -> None:
        self.chain = chain
        self.address = wallet.address
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.purse = Purse(self.writer)
        self._wallet = wallet
        self._services_url = services_url

    @cached_property
    def services(self) -> ServicesClient:
        """The Job Definition service and the log service.

        Raises:
            ConfigurationError: The URL of the services is refused, for example because it is not encrypted.
        """
        # Here, because HTTP and signatures take 0.3 s to load, which commands that only read the chain save.
        from deepgrid.services.client import ServicesClient

        return ServicesClient.of(self.chain.book, self._wallet.account, self._services_url)

    async def close(self) -> None:
        """Close the connections. Called by `customer_session`."""
        try:
            if "services" in vars(self):
                await self.services.close()
        finally:
            await self.sender.close()

    async def check(self, order: Order, *, approve: bool = True) -> None:
        """Check that the grid would accept the order now. Nothing is sent.

        Args:
            order: The order.
            approve: Whether `request` may raise the allowance. If False, the current allowance must suffice.

        Raises:
            InputError: The order locks too few credits, or the customer has too few. Or the job needs what no cluster
                of the grid has, such as a container runtime, or more time than the credits buy.
            ContractError: The grid accepts no new jobs.
            ChainError: The node does not answer.
        """
        accepts, constants, balance, allowance = await asyncio.gather(
            self.chain.accepts_requests(),
            self.chain.constants(),
            self.chain.balance(self.address),
            self.chain.allowance(self.address),
        )
        if not accepts:
            raise ContractError(
                "The grid takes no new jobs at the moment.", name="NewJobRequestDisabled", next_step="Try again later."
            )
        self.purse.check_minimum(order.locked_wei, constants.minimum_wei)
        self.purse.check(order.locked_wei, balance, allowance if not approve else None)
        await self.purse.budget.require(order.locked_wei)
        providers = await self.chain.providers() if order.needs or order.terms.min_minutes > 1 else []
        check_reach(order, providers)
        if lacking := order.unknown_features(providers):
            raise InputError(
                f"The job needs {lacking}, which no cluster of the grid has.",
                next_step="Look at `dps offers`, which says what each cluster lacks.",
            )

    async def store(self, order: Order, salt: bytes | None = None) -> str:
        """Store the definition at the Job Definition service, which releases it only to the job's provider.

        Args:
            order: The order.
            salt: 32 bytes that make the hash unpredictable. By default they are random.

        Returns:
            The definition's hash. Without a salt it is new for every call.

        Raises:
            AccessDenied: The customer holds fewer credits than a job has to lock.
            InputError: The service refuses the definition.
            ServiceError: The service does not answer.
        """
        return await self.services.upload(order.job, salt)

    async def allow(self, order: Order) -> None:
        """Set the allowance to exactly the order's credits, unless it suffices already."""
        if await self.chain.allowance(self.address) < order.locked_wei:
            await self.writer.approve(order.locked_wei)

    async def with_ceiling(self, order: Order) -> Order:
        """Return the order with a ceiling: its own, or the highest price that the grid quotes now. Raises ChainError.

        If no cluster can take it now, nothing is quoted, and there is no ceiling.
        """
        if order.terms.max_rate_wei is not None:
            return order
        return order.with_ceiling(order.dearest_rate(await self.chain.providers()))

    async def request(self, order: Order, definition_hash: str, *, approve: bool = True) -> int:
        """Request the job and lock its credits, with the price ceiling of `with_ceiling`.

        A repeated call with the same hash returns the job that exists.

        Args:
            order: The order.
            definition_hash: Hash of the stored definition, as returned by `store`.
            approve: Raise an allowance that is too low, to exactly what is locked. It is restored if the
                contract refuses the request.

        Returns:
            The id of the job.

        Raises:
            ContractError: The contract refuses the request, for example for lack of credits.
            ChainError: The node does not answer. If it is not transient, the request may have been sent.
        """
        existing = await self.find(definition_hash)
        if existing is not None:
            return existing
        (request,) = await self._requests([(order, definition_hash)])
        return await self.purse.locking(
            order.locked_wei, lambda first: self._request(request, approve_first=first), approve=approve
        )

    async def request_all(self, orders: Sequence[tuple[Order, str]], *, approve: bool = True) -> list[int]:
        """Request many jobs and lock their credits: all or none, in one transaction.

        Jobs that do not fit in one transaction are requested in halves. Then the first half may exist when the second
        one is refused.

        Args:
            orders: Each order with the hash of its stored definition. None of them may have a job yet.
            approve: Raise an allowance that is too low, to exactly the sum that is locked. It is restored if the
                contract refuses the requests.

        Returns:
            The ids of the jobs, in the order of the orders.

        Raises:
            ContractError: The contract refuses the requests, for example for lack of credits.
            ChainError: The node does not answer. The requests may have been sent.
        """
        if not orders:
            return []
        requests = await self._requests(orders)
        total_wei = sum(order.locked_wei for order, _ in orders)
        try:
            return await self.purse.locking(
                total_wei, lambda first: self._request_all(requests, approve_first=first), approve=approve
            )
        except ContractError as error:
            if len(orders) == 1 or not (too_large(error) or error.name == TOO_MUCH_TEXT):
                raise
        middle = len(orders) // 2
        first_ids = await self.request_all(orders[:middle], approve=approve)
        return first_ids + await self.request_all(orders[middle:], approve=approve)

    async def top_up(self, job_id: int, amount_wei: int, *, approve: bool = True) -> Receipt:
        """Lock more credits for a claimed job. The job may belong to another customer.

        Args:
            job_id: Id of the job.
            amount_wei: Wei of credits to add.
            approve: Raise an allowance that is too low, as `request` does.

        Returns:
            The receipt of the transaction.

        Raises:
            NotFound: The chain has no such job.
            ContractError: No cluster has claimed the job, or it is over.
            InputError: The amount is 0, or the customer has too few credits.
            ChainError: The node does not answer.
        """
        if not amount_wei:
            raise InputError("The amount to add is 0.", next_step="Give an amount above 0.")
        job, balance, allowance = await asyncio.gather(
            self.chain.job(job_id), self.chain.balance(self.address), self.chain.allowance(self.address)
        )
        if job.status.cold:
            raise ContractError(f"Job {job_id} is over: it is {job.status.words}.", name=NOT_CLAIMED)
        if job.status < JobStatus.SCHEDULED:
            words = f"Job {job_id} is {job.status.words}: no cluster has claimed it."
            next_step = "Wait until a cluster has claimed it, then top it up."
            raise ContractError(words, name=NOT_CLAIMED, next_step=next_step)
        self.purse.check(amount_wei, balance, allowance if not approve else None)
        return await self.purse.locking(
            amount_wei, lambda first: self.writer.top_up(job_id, amount_wei, approve_first=first), approve=approve
        )

    async def find(self, definition_hash: str) -> int | None:
        """Find the job that was requested with this hash, among the customer's 50 newest jobs.

        Returns:
            The id of the job, or None.
        """
        newest = (await self.chain.jobs_by_customer(self.address))[-RECENT_JOBS:]
        jobs = await self.chain.jobs(newest)
        return next((job.id for job in jobs if job.definition.definition_hash == definition_hash), None)

    async def _request_all(self, requests: Sequence[Request], *, approve_first: int | None) -> list[int]:
        if approve_first is not None:  # mined first, so that the gas of the requests can be estimated
            await self.writer.approve(approve_first)
        return await self.writer.request_jobs(requests)

    async def _requests(self, orders: Sequence[tuple[Order, str]]) -> list[Request]:
        """Return the requests to send now, with the price ceilings and times from the terms of the orders."""
        now = 0
        if any(order.terms.give_up_after_s for order, _ in orders):
            now = await self.chain.next_block_time()
        return [(await self.with_ceiling(order)).request(definition_hash, now) for order, definition_hash in orders]

    async def _request(self, request: Request, *, approve_first: int | None) -> int:
        try:
            return await self.writer.request_job(
                request.definition, request.locked_wei, request.name, request.delegate, wishes=request.wishes,
                approve_first=approve_first,
            )  # fmt: skip
        except ChainError as error:
            if not error.transient:
                raise
            words, next_step = "The request may have been sent.", "Look at `dps job list` before you submit again."
            raise ChainError(f"{error.message} {words}", transient=False, next_step=next_step) from None


@asynccontextmanager
async def customer_session(settings: CustomerSettings) -> AsyncIterator[CustomerSession]:
    """Open a session of a customer, and close it at the end.

    Args:
        settings: The customer's key, and where the grid is.

    Yields:
        The session.

    Raises:
        ConfigurationError: The key, the address book or the chain is wrong.
        ChainError: The node does not answer.
    """
    wallet = Wallet.load(settings.key_file)
    async with await Chain.connect(AddressBook.load(settings.book)) as chain:
        session = CustomerSession(chain, wallet, settings.services_url)
        try:
            yield session
        finally:
            await session.close()


class Purse:
    """The credits of the customer who owns `writer`, and the budget for them."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.budget = BudgetKeeper(writer.chain, writer.address)

    def check(self, amount_wei: int, balance: int, allowance: int | None) -> None:
        """Raise InputError when `amount_wei` cannot be locked. An `allowance` of None is not checked."""
        locked = format_credits(amount_wei)
        if amount_wei > balance:
            raise InputError(
                f"{locked} credits cannot be locked; {self._writer.address} has {format_credits(balance)}.",
                next_step="Lock fewer, or get more credits.",
            )
        if allowance is not None and amount_wei > allowance:
            raise InputError(
                f"The allowance is {format_credits(allowance)} credits; {locked} are needed, and this call may not"
                " change it.",
                next_step=f"Run `dps allowance set {locked}`, or omit --no-approve.",
            )

    def check_minimum(self, locked_wei: int, minimum_wei: int) -> None:
        """Raise InputError when a job would lock less than the contract's minimum."""
        if locked_wei < minimum_wei:
            locked, minimum = format_credits(locked_wei), format_credits(minimum_wei)
            raise InputError(f"{locked} credits are too few.", next_step=f"Lock at least {minimum}.")

    async def locking(self, amount_wei: int, send: Callable[[int | None], Awaitable[T]], *, approve: bool) -> T:
        """Send a transaction that locks `amount_wei`. `send` gets the allowance to set first, or None.

        Raises InputError for what exceeds the customer's budget.

        With `approve`, an allowance that is too low is set to exactly `amount_wei`. It is restored when the
        contract refuses.
        """
        async with self.budget.alone(amount_wei):
            await self.budget.require(amount_wei)
            allowance = await self._writer.chain.allowance(self._writer.address)
            short = approve and allowance < amount_wei
            try:
                return await send(amount_wei if short else None)
            except ContractError as error:
                if short:
                    await self._writer.approve(allowance)
                elif approve and error.name == "ERC20InsufficientAllowance":  # another submission has used it up
                    return await send(amount_wei)
                raise
