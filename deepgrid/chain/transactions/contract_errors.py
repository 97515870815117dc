"""Errors of the contracts as sentences for the user.

One table of selectors is built from the ABIs of all contracts, because a call of one contract may revert inside
another: the credit token may refuse a job's deposit.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Awaitable, Collection
from typing import Any

from eth_utils.crypto import keccak

from deepgrid.billing.credits import format_credits
from deepgrid.chain.node.contract import CONTRACTS, decode_named, interface, selector
from deepgrid.chain.node.node import Rpc
from deepgrid.chain.node.node_errors import NodeRefused
from deepgrid.chain.transactions.error_sentences import PANICS, SENTENCES, TOKEN_TEXTS
from deepgrid.chain.transactions.transaction import Call
from deepgrid.errors import ChainError, ContractError, GridError
from deepgrid.lifecycle.states import JobStatus

ADMIN = "DEFAULT_ADMIN_ROLE"
ROLES = (ADMIN, "METASCHEDULER_ROLE", "METASCHEDULER_CONTRACT_ROLE", "MINTER_ROLE")
OUT_OF_GAS = "OutOfGas"
TOO_MUCH_GAS = ("out of gas", "outofgas", "memoryoog", "gas required exceeds", "block gas limit", "gas limit too high")
SOLIDITY_ERRORS: tuple[dict[str, Any], ...] = (
    {"type": "error", "name": "Error", "inputs": [{"name": "message", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)


def role_hash(role: str) -> bytes:
    """Return the 32 bytes that identify `role` in AccessControl."""
    return bytes(32) if role == ADMIN else keccak(text=role)


class _SentenceFormatter(string.Formatter):
    """str.format with the additional formats `credits`, `ceiling`, `status` and `role`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "credits":
            return format_credits(value)
        if format_spec == "ceiling":  # a request without one: the contract holds it to the prices of its time
            return format_credits(value) if value else "the prices at its request, which rose since"
        if format_spec == "status":
            return JobStatus(value).words if value in iter(JobStatus) else f"in state {value}"
        if format_spec == "role":
            return next((role for role in ROLES if role_hash(role) == value), f"0x{value.hex()}")
        return str(super().format_field(value, format_spec))


def contract_error(data: bytes) -> ContractError:
    """Return the error in the revert data of a call."""
    known = _table().get(data[:4])
    try:
        if known is None:
            what = f"an unknown reason (0x{data[:4].hex()})" if len(data) >= 4 else "no reason"
            return ContractError(f"The contract refused the call and gave {what}.")
        args = decode_named(known["inputs"], data[4:])
    except ChainError:
        return ContractError("The contract refused the call; its revert data cannot be decoded.")
    name: str = known["name"]
    if name == "Panic":
        message, next_step = f"The contract failed: {PANICS.get(args['code'], hex(args['code']))}.", ""
    elif name == "Error":
        unknown = ("Error", f"The contract refused: {args['message']}.")
        name, message = TOKEN_TEXTS.get(args["message"], unknown)
        _, next_step = SENTENCES.get(name, ("", ""))
    else:
        message, next_step = SENTENCES.get(name, (f"The contract refused: {name}.", ""))
        message = _SentenceFormatter().vformat(message, (), args)
    return ContractError(message, name=name, args_by_name=args, next_step=next_step)


def refusal(error: ChainError) -> GridError:
    """Return the contract's error inside a node's error, if there is one; else `error` itself."""
    if isinstance(error, NodeRefused):
        if error.data:
            return contract_error(error.data)
        if error.says(*TOO_MUCH_GAS):
            return ContractError("The call takes more gas than a transaction may have.", name=OUT_OF_GAS)
        if error.says("revert"):
            return ContractError("The contract refused the call and gave no reason.")
    return error


def too_large(error: GridError) -> bool:
    """Return whether the refused call may succeed with fewer items.

    FailedCall counts too: if RareCalls runs out of gas, the MetaScheduler only sees that its call failed.
    """
    return isinstance(error, ContractError) and error.name in (OUT_OF_GAS, "FailedCall")


async def unless_overtaken(sending: Awaitable[object], overtaken: Collection[str]) -> ContractError | None:
    """Send a transaction. Returns the contract's error if it is one of `overtaken`: another process was first."""
    try:
        await sending
    except ContractError as error:
        if error.name not in overtaken:
            raise
        return error
    return None


async def mined_revert_reason(rpc: Rpc, sender: str, call: Call, gas: int, receipt: dict[str, Any]) -> ContractError:
    """Return why a mined transaction was reverted. Receipts do not say it, so this simulates the call again.

    It simulates on the state after the block, which includes earlier transactions of the block and the block's time.
    Then it tries the state before the block, then the newest state, because some nodes keep no other. Raises
    ChainError if the node does not answer.
    """
    if int(receipt["gasUsed"], 16) >= gas:
        return ContractError(f"{call.title} needed more than its {gas} gas.", name=OUT_OF_GAS)
    number = int(receipt["blockNumber"], 16)
    again = {**call.as_params(sender), "gas": hex(gas)}
    for block in (hex(number), hex(number - 1), "latest"):
        try:
            await rpc.call("eth_call", again, block)
        except ChainError as error:
            reason = refusal(error)
            if isinstance(reason, ContractError):
                return reason
            if not isinstance(error, NodeRefused):
                raise
    return ContractError(f"{call.title} was reverted when it was mined, and would succeed now.")


@functools.cache
def _table() -> dict[bytes, dict[str, Any]]:
    table = {selector(item): item for item in SOLIDITY_ERRORS}
    for contract in CONTRACTS:
        table.update(interface(contract).errors)
    return table
