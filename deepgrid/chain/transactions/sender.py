"""One sender per key: numbers, signs, sends and follows that key's transactions.

Promises:
* Transactions get their nonces in the order of the `send` calls, and are mined in that order.
* A revert is a typed ContractError. It comes from the estimate before anything is sent, or from the mined revert.
* A signed transaction is sent again until it is mined or its caller gave up. This holds through a restarted node, a
  lost answer, a reorganisation, and a fee that became too low. It keeps its nonce, so it is mined once.
* If the chain drops a mined transaction within the next minute, it is sent again, as long as this object lives.
* Before anything is signed, an unreachable node is an error at once.
* Processes that share a key file take turns (see `nonce_lease.py`).

One task does all the work while there is any. It takes the queued transactions and estimates them. `in_flight.py`
numbers and sends them. Then the task polls for their results.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from deepgrid.chain.node.node import Node
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.transactions.contract_errors import OUT_OF_GAS, refusal
from deepgrid.chain.transactions.in_flight import DEFAULTS, InFlight, SenderSettings
from deepgrid.chain.transactions.nonce_lease import NonceLease, Turns
from deepgrid.chain.transactions.transaction import Call, Outgoing, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, ContractError, GridError

log = logging.getLogger(__name__)

LARGEST_GAS = 2**24  # EIP-7825's limit of a transaction


class Sender:
    """Sends the transactions of `wallet`. Make one per key and process, and use it from one event loop."""

    def __init__(self, chain: Node, wallet: Wallet, settings: SenderSettings = DEFAULTS) -> None:
        self._settings = settings
        self._chain = chain
        self.wallet = wallet
        self._queue: deque[Outgoing] = deque()
        self._flight = InFlight(chain, wallet, settings)
        self._turns = Turns(settings.hold_s, settings.let_in_s)
        self._wake = asyncio.Event()
        self._silence = ConditionLog(log, f"cannot follow the transactions of {wallet.address}")
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self.wallet.address

    @property
    def at_rest(self) -> bool:
        """Whether nothing is queued, in flight, or so recent that a reorganisation could still undo it."""
        return not self._queue and (self._task is None or self._task.done())

    async def send(self, call: Call, *, gas: int | None = None, timeout_s: float = 120.0) -> Receipt:
        """Send `call` and wait until it is mined, for at most `timeout_s` seconds.

        `gas` skips the estimate, for a call that only works after another one in flight.
        Raises ContractError if the contract reverts, and ChainError for other failures.
        """
        waiter: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._queue.append(Outgoing(call, gas, waiter))
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"sender {self.address}")
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter
        except TimeoutError:
            raise ChainError(
                f"{call.title} was not mined within {timeout_s:.0f} s and may still be.",
                next_step="Check the chain before you repeat it.",
            ) from None

    async def close(self) -> None:
        """Stop. Transactions in flight may still be mined; their callers get a ChainError. Nothing is sent again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_all(_stopped_error())  # a task that is cancelled before its first step runs no `finally`
        self._flight.forget()

    async def _run(self) -> None:
        try:
            while self._queue or await self._dropped():
                await self._turns.let_others_in()
                try:
                    async with NonceLease(self.wallet.lease_file, self._settings.lease_wait_s):
                        await self._turn()
                except GridError as error:
                    self._fail_all(error)
                self._turns.released()
        finally:
            self._fail_all(_stopped_error())

    def _fail_all(self, error: GridError) -> None:
        self._flight.fail(error)
        for outgoing in self._queue:
            outgoing.fail(error)
        self._queue.clear()

    async def _dropped(self) -> bool:
        """Wait for work: True if something is queued or the chain dropped a recent transaction."""
        while True:
            self._wake.clear()
            await self._sleep(self._settings.watch_s)
            if self._queue:
                return True
            try:
                went_back = await self._flight.went_back()
            except ChainError as error:
                went_back = False if error.transient else None
            if self._queue or went_back:
                return True
            if went_back is None:
                return False

    async def _turn(self) -> None:
        """Work while holding the lease, until no transaction is awaited or other processes must get a chance."""
        clock = asyncio.get_running_loop().time
        await self._flight.begin()
        until = clock() + self._settings.hold_s
        failures = 0
        while True:
            self._wake.clear()
            if self._queue and clock() < until:
                await self._dispatch()
            if not self._flight.awaited:
                return
            try:
                await self._flight.look()
                failures = 0
                self._silence.end()
            except ChainError as error:
                failures += 1
                self._silence.note(error)
            if self._flight.awaited:  # else the turn ends: a reorganisation may drop transactions meanwhile
                pause_s = self._settings.poll_s * 2 ** min(failures, 10)
                await self._sleep(min(pause_s, self._settings.longest_pause_s))

    async def _sleep(self, pause_s: float) -> None:
        """Pause until new work arrives, for at most `pause_s` seconds."""
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _dispatch(self) -> None:
        """Estimate all queued transactions at once, then number and send them one by one.

        One by one, because a refused transaction frees its nonce for the next one. Transactions sent beyond a gap
        would be mined later, unexpectedly, when another transaction fills the gap.
        """
        batch = list(self._queue)  # each one stays queued until it is sent, so that `close` finds it
        try:
            fees = await self._flight.fees()
        except ChainError as error:
            for _ in batch:
                self._queue.popleft().fail(error)
            return
        await asyncio.gather(*(self._estimate(one) for one in batch if one.gas is None and one.awaited))
        for outgoing in batch:
            if outgoing.awaited:
                await self._flight.send(outgoing, fees)
            self._queue.popleft()

    async def _estimate(self, outgoing: Outgoing) -> None:
        try:
            (answer,) = await self._chain.newest([("eth_estimateGas", [outgoing.call.as_params(self.address)])])
            with making_sense("an estimate"):
                estimate = int(answer, 16)
        except ChainError as error:
            outgoing.fail(refusal(error))
            return
        margin = estimate * self._settings.margin_percent // 100 + outgoing.call.spare_gas
        outgoing.gas = min(estimate + margin, LARGEST_GAS)
        if estimate > LARGEST_GAS:
            what = f"{outgoing.call.title} takes {estimate} gas; a transaction may have {LARGEST_GAS}."
            outgoing.fail(ContractError(what, name=OUT_OF_GAS))


def _stopped_error() -> ChainError:
    return ChainError("Sending was stopped. Sent transactions may still be mined.")
