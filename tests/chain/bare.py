"""A chain without contracts, with a key and its sender, for tests of nodes, keys and transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from deepgrid.chain.node.node import Node
from deepgrid.chain.transactions.in_flight import SenderSettings
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Fees, Outgoing, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from tests.chain.anvil import Anvil
from tests.waiting import until

GWEI = 10**9
REWIND_S = 0.3  # these chains go back to fewer blocks, as no network does
IMPATIENT = SenderSettings(stall_s=0.3, lost_s=0.5)


def in_pool(anvil: Anvil, address: str) -> list[int]:
    """Return the nonces of an account's transactions that the node holds, executable or not."""
    pools = anvil.call("txpool_content").values()
    return sorted(int(n) for pool in pools for owner in pool if owner.lower() == address.lower() for n in pool[owner])


class Bare:
    """A chain without contracts that mines on request, a funded key, and its sender."""

    def __init__(self, anvil: Anvil, node: Node, folder: Path) -> None:
        self.anvil = anvil
        self.node = node
        node.own_writes.patience_s = REWIND_S
        self.wallet = Wallet.create(folder / "keys" / "key")
        anvil.fund(self.wallet.address)
        self.sender = self.new_sender(IMPATIENT)

    def new_sender(self, settings: SenderSettings = IMPATIENT) -> Sender:
        """Return another sender of the key, as another process would have."""
        return Sender(self.node, Wallet.load(self.wallet.key_file or ""), settings)

    def send(self, sender: Sender | None = None, timeout_s: float = 60) -> asyncio.Task[Receipt]:
        """Start sending a transaction that does nothing."""
        call = Call("nothing", self.wallet.address, "0x")
        return asyncio.create_task((sender or self.sender).send(call, gas=21_000, timeout_s=timeout_s))

    def send_raw(self, nonce: int, tip: int = GWEI, base: int = 4000 * GWEI) -> str:
        """Send with this key without the sender, for fees in wei per gas. Returns the hash."""
        outgoing = Outgoing(Call("foreign", self.wallet.address, "0x"), 21_000, None)
        outgoing.sign(self.wallet.account, self.node.chain_id, nonce, Fees.for_base(base, tip))
        return str(self.anvil.call("eth_sendRawTransaction", outgoing.raw))

    def in_pool(self) -> list[int]:
        """Return the nonces of the key's transactions that the node holds, executable or not."""
        return in_pool(self.anvil, self.wallet.address)

    def fee_in_pool(self) -> int:
        """Return the highest fee of the key's waiting transactions in wei per gas; 0 if none waits."""
        pool = self.anvil.call("txpool_content")["pending"]
        mine = [pool[owner] for owner in pool if owner.lower() == self.wallet.address.lower()]
        return max((int(tx["maxFeePerGas"], 16) for by_nonce in mine for tx in by_nonce.values()), default=0)

    def mined(self) -> int:
        return int(self.anvil.call("eth_getTransactionCount", self.wallet.address, "latest"), 16)

    async def mine_until_done(self, *tasks: asyncio.Task[Receipt]) -> list[Receipt]:
        def done() -> bool:
            self.anvil.mine()
            return all(task.done() for task in tasks)

        await until(done)
        return [task.result() for task in tasks]
