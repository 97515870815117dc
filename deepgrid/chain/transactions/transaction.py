"""One transaction: its call, its signature and its result."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepgrid.chain.transactions.eth_accounts import LocalAccount

PLAIN_TRANSFER_GAS = 21_000
# Common nodes want a replacement to pay at least a tenth more than the transaction that it replaces.
BUMP_NUMERATOR, BUMP_DENOMINATOR = 5, 4


@dataclass(frozen=True, slots=True)
class Call:
    """A call to `to` (None: a deployment) with ABI-encoded `data`. Messages name it by its `title`.

    It transfers `value_wei` of the chain's own currency. `spare_gas` is added to the node's estimate, for a call that
    does more when it is mined a second later.
    """

    title: str
    to: str | None
    data: str
    value_wei: int = 0
    spare_gas: int = 0

    def as_params(self, sender: str) -> dict[str, str]:
        """Return the call as a parameter of JSON-RPC."""
        params = {"from": sender, "data": self.data, "value": hex(self.value_wei)}
        return params if self.to is None else {**params, "to": self.to}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A mined transaction that succeeded. `logs` are raw; `contract` is the address of a deployed contract."""

    tx_hash: str
    block: int
    block_hash: str
    gas_used: int
    logs: list[dict[str, Any]]
    contract: str | None

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Receipt:
        return cls(
            tx_hash=raw["transactionHash"], block=int(raw["blockNumber"], 16), block_hash=raw["blockHash"],
            gas_used=int(raw["gasUsed"], 16), logs=raw["logs"], contract=raw.get("contractAddress"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fees:
    """Fees in wei per gas, as of a block: of EIP-1559, or one price on a chain without it."""

    base: int
    tip: int
    limit: int
    block: int = 0
    flat: bool = False

    @classmethod
    def for_base(cls, base: int, tip: int, block: int = 0) -> Fees:
        """Return fees that stay valid through several blocks with a rising base fee."""
        return cls(base, tip, 2 * base + tip, block)

    @classmethod
    def of_price(cls, price: int, block: int = 0) -> Fees:
        """Return fees on a chain without EIP-1559: all of the price is paid, so it offers no more than is usual."""
        return cls(price, 0, price, block, flat=True)

    def bumped(self, old: Fees) -> Fees:
        """These fees, raised enough to replace a transaction with the fees `old`."""
        tip, limit = (-(-fee * BUMP_NUMERATOR // BUMP_DENOMINATOR) for fee in (old.tip, old.limit))
        return Fees(self.base, max(self.tip, tip), max(self.limit, limit), self.block, self.flat)


@dataclass(eq=False)
class Outgoing:
    """A transaction and its waiting caller. It has a nonce once it is signed, and one hash per signature."""

    call: Call
    gas: int | None
    waiter: asyncio.Future[Receipt] | None
    nonce: int = -1
    fees: Fees = Fees(0, 0, 0)
    raw: str = ""
    hashes: list[str] = field(default_factory=list)
    reached: bool = False  # the node confirmed that it has it
    outbid: bool = False  # the node has another transaction with this nonce that pays more
    missing_since: float | None = None
    mined_at: float = 0.0

    @property
    def awaited(self) -> bool:
        return self.waiter is not None and not self.waiter.done()

    def succeed(self, receipt: Receipt) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(receipt)

    def fail(self, error: Exception) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(error)

    def sign(self, account: LocalAccount, chain_id: int, nonce: int, fees: Fees) -> None:
        """Sign for `nonce`. A second signature with other fees adds a second hash, and either may be mined."""
        assert self.gas is not None
        call = {"data": self.call.data, "value": self.call.value_wei, "gas": self.gas}
        place = {"chainId": chain_id, "nonce": nonce}
        offer = {"type": 2, "maxFeePerGas": fees.limit, "maxPriorityFeePerGas": fees.tip}
        if fees.flat:
            offer = {"gasPrice": fees.limit}
        fields: dict[str, Any] = {**place, **call, **offer}
        if self.call.to is not None:
            fields["to"] = self.call.to
        signed = account.sign_transaction(fields)
        self.outbid = False
        self.nonce, self.fees, self.raw = nonce, fees, f"0x{bytes(signed.raw_transaction).hex()}"
        self.hashes.append(f"0x{bytes(signed.hash).hex()}")
