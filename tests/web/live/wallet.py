"""A wallet of the browser for tests: announced as EIP-6963 says, signing with a real key on a real chain.

Its calls go from the page to Python. Tests can make it refuse, and it counts its prompts.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet

REFUSED = {"code": 4001, "message": "User rejected the request."}
PROMPTS = ("eth_requestAccounts", "eth_signTypedData_v4", "eth_sendTransaction")
ANNOUNCE = """
(() => {
  const listeners = {};
  const of = (name) => (listeners[name] ??= []);
  const provider = {
    request: async (call) => {
      const answer = await window.askWallet(call.method, call.params ?? []);
      if (answer.error) throw answer.error;
      return answer.result;
    },
    on: (name, listener) => { of(name).push(listener); },
    removeListener: (name, listener) => { listeners[name] = of(name).filter((one) => one !== listener); },
  };
  window.walletSays = (name, value) => of(name).forEach((listener) => listener(value));
  const icon = "data:image/png;base64,";
  const info = { uuid: "5b1b5c1e-0000-4000-8000-000000000001", name: "Test wallet", icon, rdns: "test.wallet" };
  const detail = Object.freeze({ info, provider });
  const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  addEventListener("eip6963:requestProvider", announce);
  announce();
})();
"""


@dataclass
class TestWallet:
    """The wallet of one customer.

    Attributes:
        prompts: Methods that prompted its user.
        refuses: Methods and types of data that it refuses.
        hangs: Methods that get no answer until `answers` is set. `held` has the ones that were called.
    """

    __test__ = False

    chain: Chain
    wallet: Wallet
    prompts: list[str] = field(default_factory=list)
    signed: list[dict[str, Any]] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    lies: dict[str, str] = field(default_factory=dict)
    hangs: set[str] = field(default_factory=set)
    held: list[str] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    connected: bool = False

    async def ask(self, method: str, params: list[Any]) -> dict[str, Any]:
        """Answer a request of the page."""
        if method in PROMPTS:
            self.prompts.append(method)
        kinds = {method, self._kind(method, params)}
        if kinds & self.hangs:
            self.held.append(method)
            await self.answers.wait()
        if kinds & self.refuses:
            return {"error": REFUSED}
        try:
            return {"result": await self._answer(method, params)}
        except Exception as error:  # the page gets each failure in the form of wallets
            return {"error": {"code": -32603, "message": str(error)}}

    def _kind(self, method: str, params: list[Any]) -> str:
        return str(json.loads(params[1])["primaryType"]) if method == "eth_signTypedData_v4" else method

    async def _answer(self, method: str, params: list[Any]) -> Any:
        if method in ("eth_requestAccounts", "eth_accounts"):
            self.connected = self.connected or method == "eth_requestAccounts"
            return [self.wallet.address] if self.connected else []
        if method == "eth_chainId":
            return hex(self.chain.chain_id)
        if method == "eth_signTypedData_v4":
            return self._signature(json.loads(params[1]))
        if method == "eth_sendTransaction":
            return await self._send(params[0])
        if method == "eth_call" and method in self.lies:
            return self.lies[method]
        return await self.chain.rpc.call(method, *params)

    def _signature(self, typed: dict[str, Any]) -> str:
        self.signed.append(typed)
        return "0x" + bytes(self.wallet.account.sign_typed_data(full_message=typed).signature).hex()

    async def _send(self, transaction: dict[str, Any]) -> str:
        chain, sender = self.chain, self.wallet.address
        gas, price, (_, nonce) = await asyncio.gather(
            chain.rpc.call("eth_estimateGas", transaction), chain.gas_price(), chain.transaction_counts(sender)
        )
        signed = self.wallet.account.sign_transaction(
            {
                "to": transaction["to"], "data": transaction["data"], "value": 0, "nonce": nonce,
                "gas": int(gas, 16) * 2, "gasPrice": price * 2, "chainId": chain.chain_id,
            }
        )  # fmt: skip
        return str(await chain.rpc.call("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex()))
