"""The numbered transactions of one key, from their signing until they are final.

The count of the key's mined transactions shows which receipts to fetch. It also reveals a transaction that hangs, and a
reorganisation of the chain. A transaction that hangs is sent again, for a higher fee if it is too cheap by now. A
recently mined transaction is remembered. If a reorganisation drops it, it is sent again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from eth_typing import HexStr

from deepgrid.chain.node.node import Node
from deepgrid.chain.node.node_errors import NodeRefused, Request, making_sense
from deepgrid.chain.transactions.contract_errors import mined_revert_reason, refusal
from deepgrid.chain.transactions.transaction import PLAIN_TRANSFER_GAS, Call, Fees, Outgoing, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, GridError

log = logging.getLogger(__name__)

# Words of nodes that refuse a transaction: they have it, its nonce is taken, one with a higher fee would replace the
# other transaction with its nonce, or the base fee outgrew its offer.
ALREADY_KNOWN, NUMBER_TAKEN, TOO_CHEAP = "already", "nonce too low", "underpriced"
BELOW_BASE_FEE = "less than block base fee"

RENUMBER_ATTEMPTS = 3
MOST_FILLERS = 100  # dead processes leave a few lost nonces; if more are missing, this is another chain


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Settings of a sender: how it shares its key, follows its transactions and raises their fees.

    Times are in seconds.
    """

    poll_s: float = 0.1  # between two polls of the node for the transactions in flight
    longest_pause_s: float = 2.0  # between two polls while the node does not answer
    lease_wait_s: float = 60.0  # for the lease of the key
    hold_s: float = 5.0  # a sender without a break offers the lease to other processes this often,
    let_in_s: float = 0.2  # for this long
    watch_s: float = 1.0  # an idle sender polls for dropped transactions this often
    margin_percent: int = 30  # added to estimates: they use the latest block, and the next one may cost more
    stall_s: float = 5.0  # without progress for this long, everything in flight is sent again
    lost_s: float = 15.0  # a used nonce without a receipt of ours for this long belongs to another program
    settled_s: float = 60.0  # a transaction that was mined this long ago counts as final
    patience_blocks: int = 6  # a transaction that this many blocks pass over gets a higher fee
    highest_fee_multiple: int = 16  # the highest fee of a transaction, as a multiple of the current usual fee


DEFAULTS = SenderSettings()


class InFlight:
    """The transactions of `wallet` in flight. Call its methods one after the other, never concurrently."""

    def __init__(self, chain: Node, wallet: Wallet, settings: SenderSettings = DEFAULTS) -> None:
        self._settings = settings
        self._rpc = chain.rpc
        self._chain = chain
        self._wallet = wallet
        self._in_flight: dict[int, Outgoing] = {}
        self._settled: dict[int, Outgoing] = {}
        self._next_nonce = 0
        self._mined = 0
        self._progress_at = 0.0
        self._knows_tips = True  # the node has eth_maxPriorityFeePerGas
        self._unsent = ConditionLog(log, "cannot send a transaction")

    @property
    def awaited(self) -> bool:
        """Whether a caller waits for one of the transactions."""
        return any(outgoing.awaited for outgoing in self._in_flight.values())

    def fail(self, error: GridError) -> None:
        """Raise `error` in all waiting callers."""
        for outgoing in self._in_flight.values():
            outgoing.fail(error)

    def forget(self) -> None:
        """Stop following all transactions."""
        self._in_flight.clear()
        self._settled.clear()

    # -- numbers -----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Read the next nonce, because another process may have used the key. Send dropped transactions again."""
        mined, pending = await self._chain.transaction_counts(self._wallet.address)
        self._mined, self._progress_at = mined, _now()
        self._in_flight = {nonce: sent for nonce, sent in self._in_flight.items() if mined <= nonce < pending}
        if self._void(mined):
            self._next_nonce = max(pending, max(self._settled) + 1)
            await self._send_again()
        else:
            self._next_nonce = pending

    async def went_back(self) -> bool | None:
        """Return whether the chain dropped a recently mined transaction; None if there is no recent one."""
        if not self._settled:
            return None
        mined, _ = await self._chain.transaction_counts(self._wallet.address)
        return self._void(mined)

    def _void(self, mined: int) -> bool:
        """Return whether the chain, with `mined` transactions of the key left, dropped some of the recent ones.

        Forgets transactions that are final, and all transactions of a chain that shares none with this one.
        """
        if self._settled and mined < min(self._settled):
            self._settled.clear()
        self._settled = {
            nonce: sent
            for nonce, sent in self._settled.items()
            if nonce >= mined or _now() - sent.mined_at < self._settings.settled_s
        }
        return any(nonce >= mined for nonce in self._settled)

    # -- sending -----------------------------------------------------------------------------

    async def send(self, outgoing: Outgoing, fees: Fees) -> None:
        """Number `outgoing`, sign it and send it. If it is refused, its caller gets the error and no gap remains."""
        for _ in range(RENUMBER_ATTEMPTS):
            if await self._send_numbered(outgoing, fees):
                return
            # Another program sends with this key without the lease. Ours was refused, so it may take a new nonce.
            try:
                self._next_nonce = max(
                    self._next_nonce, (await self._chain.transaction_counts(self._wallet.address))[1]
                )
            except ChainError as error:
                outgoing.fail(error)
                return
        outgoing.fail(ChainError(f"{outgoing.call.title} found no free nonce: another program uses this key."))

    async def _send_numbered(self, outgoing: Outgoing, fees: Fees) -> bool:
        """Sign `outgoing` for the next nonce and send it; False if that nonce is already used."""
        nonce = self._next_nonce
        outgoing.hashes.clear()
        self._sign(outgoing, nonce, fees)
        self._next_nonce += 1
        self._in_flight[nonce] = outgoing
        refused = await self._broadcast(outgoing)
        if refused is None:
            return True
        del self._in_flight[nonce]
        self._next_nonce = nonce
        if refused.says(NUMBER_TAKEN, TOO_CHEAP):
            return False
        outgoing.fail(self._explain(refused))
        return True

    def _sign(self, outgoing: Outgoing, nonce: int, fees: Fees) -> None:
        outgoing.sign(self._wallet.account, self._chain.chain_id, nonce, fees)

    async def _broadcast(self, outgoing: Outgoing) -> NodeRefused | None:
        """Send `outgoing` to the node; returns its refusal, if any. After a lost answer it is sent again later."""
        try:
            with making_sense("a transaction's hash"):
                await self._rpc.w3.eth.send_raw_transaction(HexStr(outgoing.raw))
        except NodeRefused as error:
            if error.transient or error.says(BELOW_BASE_FEE):  # checked again later, with the fees of that time
                return None
            if not error.says(ALREADY_KNOWN):
                return error
        except ChainError as error:
            self._unsent.note(f"{outgoing.call.title}: {error}")
            return None
        self._unsent.end()
        outgoing.reached = True
        return None

    # -- following ---------------------------------------------------------------------------

    async def look(self) -> None:
        """Check what was mined. Send transactions again that hang or that the chain dropped."""
        mined, _, block = await self._chain.nonces(self._wallet.address)
        now, before, self._mined = _now(), self._mined, mined
        if mined > before:
            self._progress_at = now
        candidates = [outgoing for nonce, outgoing in self._in_flight.items() if nonce < mined]
        if candidates:
            self._chain.own_writes.note(block)  # the node that shows their receipts has this block too
        await self._fetch_receipts(candidates)
        for nonce, outgoing in list(self._in_flight.items()):
            if nonce >= mined:
                outgoing.missing_since = None
            else:
                self._give_up_lost(outgoing, now)
        self._void(mined)
        unsent = any(not outgoing.reached for outgoing in self._in_flight.values())
        if unsent or mined < before or (self._in_flight and now - self._progress_at > self._settings.stall_s):
            self._progress_at = now
            await self._send_again()

    async def _fetch_receipts(self, candidates: list[Outgoing]) -> None:
        hashes = [(tx_hash, outgoing) for outgoing in candidates for tx_hash in outgoing.hashes]
        raws = await self._chain.newest([("eth_getTransactionReceipt", [tx_hash]) for tx_hash, _ in hashes])
        for raw, (_, outgoing) in zip(raws, hashes, strict=True):
            if raw is not None and outgoing.nonce in self._in_flight:
                with making_sense("a receipt"):
                    await self._settle(outgoing, raw)

    async def _settle(self, outgoing: Outgoing, raw: dict[str, Any]) -> None:
        self._chain.own_writes.note(int(raw["blockNumber"], 16))
        if raw["status"] == "0x1":
            outgoing.succeed(Receipt.of(raw))
        else:
            assert outgoing.gas is not None
            outgoing.fail(await mined_revert_reason(self._rpc, self._wallet.address, outgoing.call, outgoing.gas, raw))
        del self._in_flight[outgoing.nonce]
        self._settled[outgoing.nonce] = outgoing
        outgoing.mined_at = _now()

    def _give_up_lost(self, outgoing: Outgoing, now: float) -> None:
        """Fail a transaction whose nonce is used without a receipt of ours. A node that lags behind gets some time."""
        if outgoing.missing_since is None:
            outgoing.missing_since = now
        elif now - outgoing.missing_since > self._settings.lost_s:
            del self._in_flight[outgoing.nonce]
            outgoing.fail(ChainError(f"{outgoing.call.title} was displaced: another program uses this key."))

    # -- sending again -----------------------------------------------------------------------

    async def _send_again(self) -> None:
        """Send all transactions that are not mined again, in order, for a higher fee if they became too cheap.

        After the chain went back this includes transactions that were mined before. A nonce may have no known
        transaction: a dead process sent it, and the node's memory lost it. An empty transfer to the same account fills
        it. Otherwise all later transactions would wait forever.
        """
        known = {**self._settled, **self._in_flight}
        if self._next_nonce - self._mined > len(known) + MOST_FILLERS:
            raise ChainError("The node's chain is another one than before.", transient=False)
        fees = await self.fees()
        for nonce in range(self._mined, self._next_nonce):
            outgoing = known.get(nonce)
            if outgoing is None:
                outgoing = Outgoing(Call("A filler", self._wallet.address, "0x"), PLAIN_TRANSFER_GAS, None)
                self._sign(outgoing, nonce, fees)
                self._in_flight[nonce] = outgoing
            elif self._is_too_cheap(outgoing, fees):
                self._sign(outgoing, nonce, fees.bumped(outgoing.fees))
            refused = await self._broadcast(outgoing)
            if refused is not None:
                self._refused_again(outgoing, refused)

    def _refused_again(self, outgoing: Outgoing, refused: NodeRefused) -> None:
        log.debug("The node refused a repeated transaction: title=%s error=%s", outgoing.call.title, refused.reason)
        outgoing.reached = True
        if refused.says(TOO_CHEAP):
            outgoing.outbid = True
        elif not refused.says(NUMBER_TAKEN):
            # It will never be mined. Later transactions must not wait for it: the next pass fills its nonce.
            outgoing.fail(self._explain(refused))
            self._in_flight.pop(outgoing.nonce, None)
            self._settled.pop(outgoing.nonce, None)

    def _explain(self, refused: NodeRefused) -> GridError:
        if refused.says("insufficient funds"):
            address = self._wallet.address
            return ChainError(f"{address} cannot pay for gas.", next_step=f"Send gas money to {address}.")
        return refusal(refused)

    async def fees(self) -> Fees:
        """Current fees of a transaction. A chain without EIP-1559 has no base fee, and its node may know no tips."""
        latest: Request = ("eth_getBlockByNumber", ["latest", False])
        asked = "eth_maxPriorityFeePerGas" if self._knows_tips else "eth_gasPrice"
        block, price = await self._rpc.results([latest, (asked, [])])
        if self._knows_tips and isinstance(price, NodeRefused) and not price.transient:
            self._knows_tips = False
            return await self.fees()
        for answer in (block, price):
            if isinstance(answer, NodeRefused):
                raise answer
        with making_sense("fees"):
            number, base, wei = int(block["number"], 16), block.get("baseFeePerGas"), int(price, 16)
            if base is not None:
                tip = wei if self._knows_tips else max(wei - int(base, 16), 0)
                return Fees.for_base(int(base, 16), tip, number)
        return Fees.of_price(await self._chain.gas_price() if self._knows_tips else wei, number)

    def _is_too_cheap(self, outgoing: Outgoing, today: Fees) -> bool:
        """Return whether the base fee outgrew its offer, or blocks pass it over, so that it needs a higher fee."""
        offer = outgoing.fees
        if offer.limit < today.base + offer.tip:
            return True
        passed_over = today.block - offer.block >= self._settings.patience_blocks
        may_offer_more = offer.limit < self._settings.highest_fee_multiple * today.limit
        return (passed_over or outgoing.outbid) and may_offer_more


def _now() -> float:
    return asyncio.get_running_loop().time()
