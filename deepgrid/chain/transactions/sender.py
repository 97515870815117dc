"""One sender a key: numbers, signs, sends and follows that key's transactions.

Promises:
* `send` calls are numbered in the order in which they were made, and land in that order.
* A revert is a typed ContractError: before anything is sent when gas is estimated, else from the mined revert.
* What was signed is sent again until it is mined or its waiter gave up: through a restarted node, a lost answer,
  a reorganisation, a fee that became too low. It keeps its number, so it lands once.
* What was mined is sent again when the chain drops it within the next minute, as long as this object lives.
* Before anything was signed, an unreachable node is an error at once.
* Processes that share a key file take turns (see `lease.py`).

One task does all the work while there is some: it takes what is queued, estimates it and hands it to `flight.py`,
which numbers and sends it, then asks once a poll what became of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from deepgrid.chain.node.node import Node
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.transactions.contract_errors import OUT_OF_GAS, refusal
from deepgrid.chain.transactions.in_flight import InFlight
from deepgrid.chain.transactions.nonce_lease import NonceLease
from deepgrid.chain.transactions.transaction import Call, Outgoing, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, ContractError, GridError

log = logging.getLogger(__name__)

POLL_S = 0.1
LONGEST_PAUSE_S = 2.0
LEASE_WAIT_S = 60.0
HOLD_S = 5.0  # a busy sender lets other processes in this often,
LET_IN_S = 0.2  # for this long
WATCH_S = 1.0  # how often an idle sender looks whether the chain dropped what was mined
MARGIN_PERCENT = 30  # estimates look at the latest block; what runs in the next one may cost more
LARGEST_GAS = 2**24  # EIP-7825's limit of a transaction


class Sender:
    """Sends the transactions of `wallet`; make one per key and process, use it from one event loop."""

    def __init__(self, chain: Node, wallet: Wallet) -> None:
        self._rpc = chain.rpc
        self.wallet = wallet
        self._queue: deque[Outgoing] = deque()
        self._flight = InFlight(chain, wallet)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self.wallet.address

    @property
    def at_rest(self) -> bool:
        """Whether nothing is queued, in flight, or so new that a reorganisation may undo it unseen."""
        return not self._queue and (self._task is None or self._task.done())

    async def send(self, call: Call, *, gas: int | None = None, timeout_s: float = 120.0) -> Receipt:
        """Send `call` and wait until it is mined, for at most `timeout_s` seconds.

        `gas` skips the estimate: for a call that only works after another one in flight.
        Raises ContractError when the contract refuses, ChainError otherwise.
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
                next_step="Look at the chain before doing it again.",
            ) from None

    async def close(self) -> None:
        """Stop; what is in flight may still be mined, its waiters get a ChainError. Nothing is sent again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_all(_stopped())  # a task that is cancelled before its first step runs no `finally`
        self._flight.forget()

    async def _run(self) -> None:
        try:
            while self._queue or await self._dropped():
                try:
                    async with NonceLease(self.wallet.lease_file, LEASE_WAIT_S):
                        await self._turn()
                except GridError as error:
                    self._fail_all(error)
                if self._queue:
                    await asyncio.sleep(LET_IN_S)
        finally:
            self._fail_all(_stopped())

    def _fail_all(self, error: GridError) -> None:
        self._flight.fail(error)
        for outgoing in self._queue:
            outgoing.fail(error)
        self._queue.clear()

    async def _dropped(self) -> bool:
        """Wait for work: True when something is queued, or the chain dropped what was mined lately; else False."""
        while True:
            self._wake.clear()
            await self._sleep(WATCH_S)
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
        """Work while holding the lease: until nothing is awaited any more, or others shall have a chance."""
        clock = asyncio.get_running_loop().time
        await self._flight.begin()
        until = clock() + HOLD_S
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
            except ChainError as error:
                failures += 1
                log.log(logging.WARNING if failures == 1 else logging.DEBUG, "following %s: %s", self.address, error)
            if self._flight.awaited:  # else the turn ends: a reorganisation may void its next number meanwhile
                await self._sleep(min(POLL_S * 2 ** min(failures, 10), LONGEST_PAUSE_S))

    async def _sleep(self, pause_s: float) -> None:
        """Pause, but not while something new waits to be sent."""
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _dispatch(self) -> None:
        """Estimate everything queued at once, then number and send it one by one.

        One by one, because a refused transaction frees its number for the next: numbers sent ahead
        of a gap would land later, on their own, when something else fills the gap.
        """
        batch = list(self._queue)  # each stays queued until it is dealt with: whoever stops us finds it there
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
            with making_sense("an estimate"):
                estimate = int(await self._rpc.w3.eth.estimate_gas(outgoing.call.as_params(self.address)))
        except ChainError as error:
            outgoing.fail(refusal(error))
            return
        outgoing.gas = min(estimate * (100 + MARGIN_PERCENT) // 100, LARGEST_GAS)
        if estimate > LARGEST_GAS:
            what = f"{outgoing.call.title} takes {estimate} gas; a transaction may have {LARGEST_GAS}."
            outgoing.fail(ContractError(what, name=OUT_OF_GAS))


def _stopped() -> ChainError:
    return ChainError("Sending was stopped; what was sent may still be mined.")
