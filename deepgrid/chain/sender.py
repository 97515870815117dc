"""One sender a key: numbers, signs, sends and follows that key's transactions.

Promises:
* `send` calls are numbered in the order in which they were made, and land in that order.
* A revert is a typed ContractError: before anything is sent when gas is estimated, else from the mined revert.
* What was signed is sent again until it is mined or its waiter gave up: through a restarted node, a
  lost answer, a reorganisation, a risen base fee. It is the same transaction each time, so it lands once.
* Before anything was signed, an unreachable node is an error at once.
* Processes that share a key file take turns (see `lease.py`).

One task does all the work while there is some: it takes what is queued, estimates, numbers and
sends it, then asks once a poll how many of the key's transactions are mined. That one number
tells which receipts to fetch, that a transaction hangs, and that the chain went back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Literal

from eth_typing import HexStr

from deepgrid.chain.errors import already_known, mined_revert_reason, number_taken, refusal, refused_sending
from deepgrid.chain.lease import Lease
from deepgrid.chain.node import Node
from deepgrid.chain.rpc import NodeRefused, making_sense
from deepgrid.chain.transaction import PLAIN_TRANSFER_GAS, Call, Fees, Outgoing, Receipt
from deepgrid.chain.wallet import Wallet
from deepgrid.errors import ChainError, GridError

log = logging.getLogger(__name__)

POLL_S = 0.1
LONGEST_PAUSE_S = 2.0
LEASE_WAIT_S = 60.0
HOLD_S = 5.0  # a busy sender lets other processes in this often,
LET_IN_S = 0.2  # for this long
STALL_S = 5.0  # without progress for this long, everything in flight is sent again
LOST_S = 15.0  # a nonce is used up and no receipt of ours appears for this long: it was somebody else's
MARGIN_PERCENT = 30  # estimates look at the latest block; what runs in the next one may cost more
LARGEST_GAS = 2**24  # EIP-7825's limit of a transaction
RECENT = 256  # mined transactions remembered for the case that the chain goes back
RENUMBER_ATTEMPTS = 3


class Sender:
    """Sends the transactions of `wallet`; make one per key and process, use it from one event loop."""

    def __init__(self, chain: Node, wallet: Wallet) -> None:
        self._chain = chain
        self._rpc = chain.rpc
        self.wallet = wallet
        self._queue: deque[Outgoing] = deque()
        self._in_flight: dict[int, Outgoing] = {}
        self._recent: dict[int, Outgoing] = {}
        self._next_nonce = 0
        self._progress_at = 0.0
        self._mined = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self.wallet.address

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
        """Stop; what is in flight may still be mined, its waiters get a ChainError."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_all(_stopped())  # a task that is cancelled before its first step runs no `finally`

    async def _run(self) -> None:
        try:
            while self._queue:
                async with Lease(self.wallet.lease_file, LEASE_WAIT_S):
                    await self._turn()
                if self._queue:
                    await asyncio.sleep(LET_IN_S)
        except GridError as error:
            self._fail_all(error)
        finally:
            self._fail_all(_stopped())

    def _fail_all(self, error: GridError) -> None:
        for outgoing in [*self._in_flight.values(), *self._queue]:
            outgoing.fail(error)
        self._in_flight.clear()
        self._queue.clear()

    async def _turn(self) -> None:
        """Work while holding the lease: until nothing is awaited any more, or others shall have a chance."""
        clock = asyncio.get_running_loop().time
        self._next_nonce = await self._nonce("pending")
        self._recent = {nonce: sent for nonce, sent in self._recent.items() if nonce < self._next_nonce}
        self._in_flight.clear()
        self._mined, self._progress_at = 0, clock()
        until = clock() + HOLD_S
        failures = 0
        while True:
            self._wake.clear()
            if self._queue and clock() < until:
                await self._dispatch()
            if not self._awaited:
                return
            try:
                await self._look(clock())
                failures = 0
            except ChainError as error:
                failures += 1
                log.log(logging.WARNING if failures == 1 else logging.DEBUG, "following %s: %s", self.address, error)
            if self._awaited:  # else the turn ends: a reorganisation may void its next number meanwhile
                await self._sleep(min(POLL_S * 2 ** min(failures, 10), LONGEST_PAUSE_S))

    @property
    def _awaited(self) -> bool:
        return any(outgoing.awaited for outgoing in self._in_flight.values())

    async def _sleep(self, pause_s: float) -> None:
        """Pause, but not while something new waits to be sent."""
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    # -- sending -----------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        """Estimate everything queued at once, then number and send it one by one.

        One by one, because a refused transaction frees its number for the next: numbers sent ahead
        of a gap would land later, on their own, when something else fills the gap.
        """
        batch = list(self._queue)  # each stays queued until it is dealt with: whoever stops us finds it there
        try:
            fees = await self._fees()
        except ChainError as error:
            for _ in batch:
                self._queue.popleft().fail(error)
            return
        await asyncio.gather(*(self._estimate(one) for one in batch if one.gas is None and one.awaited))
        for outgoing in batch:
            if outgoing.awaited:
                await self._send_first(outgoing, fees)
            self._queue.popleft()

    async def _estimate(self, outgoing: Outgoing) -> None:
        try:
            with making_sense("an estimate"):
                estimate = int(await self._rpc.w3.eth.estimate_gas(outgoing.call.as_params(self.address)))
            outgoing.gas = min(estimate * (100 + MARGIN_PERCENT) // 100, max(estimate, LARGEST_GAS))
        except ChainError as error:
            outgoing.fail(refusal(error))

    async def _send_first(self, outgoing: Outgoing, fees: Fees) -> None:
        for _ in range(RENUMBER_ATTEMPTS):
            if await self._send_numbered(outgoing, fees):
                return
            # Somebody sends with this key without the lease. Ours was refused, so it may take a new number.
            try:
                self._next_nonce = max(self._next_nonce, await self._nonce("pending"))
            except ChainError as error:
                outgoing.fail(error)
                return
        outgoing.fail(ChainError(f"{outgoing.call.title} found no free nonce: another program uses this key."))

    async def _send_numbered(self, outgoing: Outgoing, fees: Fees) -> bool:
        """Sign `outgoing` for the next nonce and send it; False when that number turns out to be taken."""
        nonce = self._next_nonce
        outgoing.hashes.clear()
        outgoing.sign(self.wallet.account, self._chain.chain_id, nonce, fees)
        self._next_nonce += 1
        self._in_flight[nonce] = outgoing
        refused = await self._broadcast(outgoing)
        if refused is None:
            return True
        del self._in_flight[nonce]
        self._next_nonce = nonce
        if number_taken(refused):
            return False
        outgoing.fail(refused_sending(refused, self.address))
        return True

    async def _broadcast(self, outgoing: Outgoing) -> NodeRefused | None:
        """Hand `outgoing` to the node, or return its refusal. A lost answer leaves it to be sent again."""
        try:
            with making_sense("a transaction's hash"):
                await self._rpc.w3.eth.send_raw_transaction(HexStr(outgoing.raw))
        except NodeRefused as error:
            if error.transient:
                return None
            if not already_known(error):
                return error
        except ChainError as error:
            log.warning("sending %s: %s", outgoing.call.title, error)
            return None
        outgoing.reached = True
        return None

    # -- following ---------------------------------------------------------------------------

    async def _look(self, now: float) -> None:
        """See what was mined; send again what hangs."""
        mined = await self._nonce("latest")
        if mined != self._mined:
            self._mined, self._progress_at = mined, now
        candidates = [outgoing for nonce, outgoing in self._in_flight.items() if nonce < mined]
        hashes = [(tx_hash, outgoing) for outgoing in candidates for tx_hash in outgoing.hashes]
        raws = await self._rpc.batch([("eth_getTransactionReceipt", [tx_hash]) for tx_hash, _ in hashes])
        for raw, (_, outgoing) in zip(raws, hashes, strict=True):
            if raw is not None:
                with making_sense("a receipt"):
                    await self._settle(outgoing, raw)
        for outgoing in candidates:
            if outgoing.nonce in self._in_flight:
                self._give_up_lost(outgoing, now)
        unsent = any(not outgoing.reached for outgoing in self._in_flight.values())
        if unsent or (self._in_flight and now - self._progress_at > STALL_S):
            self._progress_at = now
            await self._send_again(mined)

    async def _settle(self, outgoing: Outgoing, raw: dict[str, Any]) -> None:
        if raw["status"] == "0x1":
            outgoing.succeed(Receipt.of(raw))
        else:
            assert outgoing.gas is not None
            outgoing.fail(await mined_revert_reason(self._rpc, self.address, outgoing.call, outgoing.gas, raw))
        del self._in_flight[outgoing.nonce]
        self._recent[outgoing.nonce] = outgoing
        if len(self._recent) > RECENT:
            del self._recent[min(self._recent)]

    def _give_up_lost(self, outgoing: Outgoing, now: float) -> None:
        """The number is used up without a receipt of ours; a node that lags behind gets some time."""
        if outgoing.missing_since is None:
            outgoing.missing_since = now
        elif now - outgoing.missing_since > LOST_S:
            del self._in_flight[outgoing.nonce]
            outgoing.fail(ChainError(f"{outgoing.call.title} was displaced: another program uses this key."))

    async def _send_again(self, mined: int) -> None:
        """Send everything that is not mined once more, in order, with more fees where the base fee outgrew them.

        After the chain went back this includes transactions that were mined before. A number that
        nobody here knows (a dead process's, lost with the node's memory) is filled with a transfer
        of nothing to oneself, or all later ones would wait for ever.
        """
        fees = await self._fees()
        for nonce in range(mined, self._next_nonce):
            outgoing = self._in_flight.get(nonce) or self._recent.get(nonce)
            if outgoing is None:
                outgoing = Outgoing(Call("A filler", self.address, "0x"), PLAIN_TRANSFER_GAS, None)
                outgoing.sign(self.wallet.account, self._chain.chain_id, nonce, fees)
            elif outgoing.fees.limit < fees.base + outgoing.fees.tip:
                outgoing.sign(self.wallet.account, self._chain.chain_id, nonce, fees.bumped(outgoing.fees))
            refused = await self._broadcast(outgoing)
            if refused is not None:  # mined meanwhile, or a filler whose number is not lost after all
                outgoing.reached = True
                log.debug("sending %s again: %s", outgoing.call.title, refused.reason)

    # -- asking ------------------------------------------------------------------------------

    async def _nonce(self, block: Literal["latest", "pending"]) -> int:
        with making_sense("a nonce"):
            return int(await self._rpc.w3.eth.get_transaction_count(self.wallet.account.address, block))

    async def _fees(self) -> Fees:
        block, tip = await self._rpc.batch(
            [("eth_getBlockByNumber", ["latest", False]), ("eth_maxPriorityFeePerGas", [])]
        )
        with making_sense("fees"):
            return Fees.for_base(int(block["baseFeePerGas"], 16), int(tip, 16))


def _stopped() -> ChainError:
    return ChainError("Sending was stopped; what was sent may still be mined.")
