"""A client of the observed surface, with plain web3 and the table in `surface.py`, and without deepgrid. It knows a
node, its users' keys and the MetaScheduler's address, and finds everything else from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eth_abi.abi import decode
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.abi import collapse_if_tuple, function_abi_to_4byte_selector
from eth_utils.address import to_checksum_address
from web3 import HTTPProvider, Web3
from web3.contract import Contract
from web3.exceptions import ContractCustomError, ContractLogicError
from web3.logs import DISCARD
from web3.middleware import SignAndSendRawMiddlewareBuilder

from tests.contracts.surface import PARTS, abi_of

TEXT = "0x08c379a0"  # begins the data of Error(string)


class Refused(Exception):
    """A contract's error: its name and arguments."""

    def __init__(self, name: str, *args: Any) -> None:
        super().__init__(name, *args)
        self.error = (name, *args)


@dataclass(frozen=True)
class Client:
    """The grid as an existing client sees it."""

    url: str
    meta_scheduler: str

    @cached_property
    def w3(self) -> Web3:
        return Web3(HTTPProvider(self.url))

    def person(self, key: str | None = None) -> str:
        """Return an account (of `key`, or a new one) with money for gas. This client signs its transactions."""
        account: LocalAccount = Account.create() if key is None else Account.from_key(key)
        self.w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
        self.w3.provider.make_request("anvil_setBalance", [account.address, hex(10**21)])  # type: ignore[arg-type]
        self._accounts[account.address] = account
        return str(account.address)

    @cached_property
    def _accounts(self) -> dict[str, LocalAccount]:
        return {}

    @cached_property
    def scheduler(self) -> Contract:
        return self._contract("MetaScheduler", self.meta_scheduler)

    @cached_property
    def jobs(self) -> Contract:
        return self._contract("JobRepository", self.scheduler.functions.jobs().call())

    @cached_property
    def queues(self) -> Contract:
        return self._contract("ProviderJobQueues", self.scheduler.functions.providerJobQueues().call())

    @cached_property
    def constants(self) -> Contract:
        return self._contract("Constants", self.scheduler.functions.constants().call())

    @cached_property
    def providers(self) -> Contract:
        return self._contract("ProviderManager", self.scheduler.functions.providerManager().call())

    @cached_property
    def credit(self) -> Contract:
        return self._contract("Credit", self.scheduler.functions.credit().call())

    def _contract(self, part: str, address: str) -> Contract:
        return self.w3.eth.contract(address=to_checksum_address(address), abi=abi_of(part), decode_tuples=True)

    def send(self, sender: str, call: Any) -> Any:
        """Send a call and wait for its receipt. Raises Refused if the gas estimate reverts."""
        try:
            receipt = self.w3.eth.wait_for_transaction_receipt(call.transact({"from": sender}))
        except ContractLogicError as error:
            raise _refusal(error) from None
        assert receipt["status"] == 1
        return receipt

    def ask(self, call: Any, sender: str | None = None, more: Sequence[dict[str, Any]] = ()) -> Any:
        """Return the answer of a call that is not sent. Raises Refused, including for errors in the ABI `more`."""
        try:
            return call.call({"from": sender} if sender else {})
        except ContractLogicError as error:
            raise _refusal(error, more) from None

    def events_of(self, receipt: Any, part: Contract, event: str) -> list[dict[str, Any]]:
        """Return the arguments of the events of that name that `part` itself emitted in a transaction."""
        found = getattr(part.events, event)().process_receipt(receipt, errors=DISCARD)
        return [dict(log["args"]) for log in found if log["address"] == part.address]

    def permit(self, owner: str, value: int, deadline: int) -> tuple[int, bytes, bytes]:
        """Return the owner's signature that lets the MetaScheduler take `value`."""
        fields = [
            ("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256"),
            ("deadline", "uint256"),
        ]  # fmt: skip
        domain = {"name": "Credit", "version": "1", "chainId": self.w3.eth.chain_id}
        signed = self._accounts[owner].sign_typed_data(
            domain | {"verifyingContract": self.credit.address},
            {"Permit": [{"name": name, "type": kind} for name, kind in fields]},
            {
                "owner": owner, "spender": self.meta_scheduler, "value": value,
                "nonce": self.credit.functions.nonces(owner).call(), "deadline": deadline,
            },
        )  # fmt: skip
        return signed.v, signed.r.to_bytes(32, "big"), signed.s.to_bytes(32, "big")


def _refusal(error: ContractLogicError, more: Sequence[dict[str, Any]] = ()) -> Refused:
    """Return the error by its first four bytes, as clients decode it: its name, or the text that it carries."""
    if str(error.data).startswith(TEXT):
        return Refused(decode(["string"], bytes.fromhex(str(error.data)[len(TEXT) :]))[0])
    if not isinstance(error, ContractCustomError):
        return Refused(str(error.data))
    data = bytes.fromhex(str(error.data)[2:])
    for entry in [*(entry for part in PARTS for entry in abi_of(part)), *more]:
        if entry["type"] == "error" and function_abi_to_4byte_selector(entry) == data[:4]:  # type: ignore[arg-type]
            return Refused(entry["name"], *_values(entry["inputs"], data[4:]))
    return Refused(data.hex())


def _values(fields: Sequence[dict[str, Any]], data: bytes) -> list[Any]:
    values = decode([collapse_if_tuple(field) for field in fields], data)
    return [
        to_checksum_address(value) if f["type"] == "address" else value for f, value in zip(fields, values, strict=True)
    ]
