"""The methods of the relay: which calls pass, and in which form the node gets them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import rlp

from deepgrid.gateway.relay.rpc_answers import NO_METHOD, PARAMS, Fault
from deepgrid.gateway.settings import WebLimits

MOST_TOPICS = 4
MOST_OF_A_TOPIC = 100
MOST_FEE_BLOCKS = 100
LONGEST_DATA = 100_000
_QUANTITY = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_DATA = re.compile(r"0x[0-9a-fA-F]*")
HEX_OF_A_WORD = 64
GAS_OF_A_WORD = 100_000  # `getMany` of a job with 16 labels and conditions
BYTES_OF_A_PRICE = 1024
BLOCKS_OF_A_PRICE = 250
HEAD_TAGS = (None, "latest", "pending")
SETTLED_BLOCKS = 64  # below the head: later blocks may be replaced, or unknown to a node that lags
# Position of the chain's id and of the destination in transactions with an access list, and with a dynamic fee.
_TYPED = {1: (0, 4, 11), 2: (0, 5, 12)}
_LEGACY = (6, 3, 9)  # the chain's id is a part of its `v`


@dataclass(frozen=True, slots=True)
class Read:
    """A call as the node gets it. `text` is the call in one string.

    If `is_settled`, it reads blocks that no later block changes, so its answer holds for good. Otherwise the answer
    holds while the newest block is the same. `price` is the most that it costs the node, in units of
    `WebLimits.call_gas`.
    """

    method: str
    params: list[Any]
    text: str = ""
    is_settled: bool = False
    price: int = 1

    def with_most_gas(self, limits: WebLimits) -> Read | None:
        """Return the same call with all gas that a call may have; None if it had that already, or is not a call."""
        if self.method != "eth_call" or int(self.params[0]["gas"], 16) >= limits.most_call_gas:
            return None
        params = [self.params[0] | {"gas": hex(limits.most_call_gas)}, *self.params[1:]]
        return replace(self, params=params, price=min(_price(self.method, params, limits), limits.node_batch))


@dataclass(frozen=True)
class Rules:
    """Checks calls against the grid's contracts and the limits. `contracts` are addresses in lower case."""

    chain_id: int
    contracts: frozenset[str]
    limits: WebLimits
    transactions: bool = False

    def read(self, method: str, params: list[Any], head: int) -> Read:
        """Return the read for a call of a page while `head` is the newest block. Raises Fault if it must not pass."""
        check = _CHECKS.get(method)
        if check is None:
            raise Fault(NO_METHOD, f"this relay does not offer {method[:60]}")
        found = check(self, params, head)
        text, block = method + json.dumps(found), _last_block(method, found)
        price = max(_price(method, found, self.limits), len(text) // BYTES_OF_A_PRICE)
        is_settled = block is not None and block <= head - SETTLED_BLOCKS
        return Read(method, found, text, is_settled, min(price, self.limits.node_batch))

    def block(self, given: object, head: int) -> str:
        """Return a block as a number. The newest one is `head`, so that pages which ask at one moment ask the same."""
        if given in HEAD_TAGS:
            return hex(head)
        number = quantity(given, "the block")
        if not head - self.limits.blocks_back <= number <= head + self.limits.blocks_ahead:
            raise Fault(PARAMS, f"the block must be one of the newest {self.limits.blocks_back}")
        return hex(number)

    def contract(self, given: object) -> str:
        if not isinstance(given, str) or given.lower() not in self.contracts:
            raise Fault(PARAMS, "only contracts of this grid can be read here")
        return given.lower()


def quantity(given: object, what: str) -> int:
    """Return a number in the form of JSON-RPC. Raises Fault."""
    if not isinstance(given, str) or not _QUANTITY.fullmatch(given):
        raise Fault(PARAMS, f"{what} must be a number such as 0x1b4")
    return int(given, 16)


def _text(pattern: re.Pattern[str], given: object, what: str) -> str:
    """Whole bytes in hex that have this pattern, in lower case. Raises Fault."""
    if not isinstance(given, str) or len(given) > LONGEST_DATA or len(given) % 2 or not pattern.fullmatch(given):
        raise Fault(PARAMS, f"{what} is malformed")
    return given.lower()


def _count(params: list[Any], least: int, most: int) -> list[Any]:
    if not least <= len(params) <= most:
        raise Fault(PARAMS, f"the call needs {least} to {most} parameters")
    return [*params, *[None] * (most - len(params))]


def _last_block(method: str, params: list[Any]) -> int | None:
    """Return the newest block that a read is about; None if the newest block of all may change its answer."""
    if method == LOGS:
        return int(params[0]["toBlock"], 16)
    return int(params[_BLOCK_AT[method]], 16) if method in _BLOCK_AT else None


def _price(method: str, params: list[Any], limits: WebLimits) -> int:
    match method:
        case "eth_call":
            return 1 + (int(params[0]["gas"], 16) - 1) // limits.call_gas
        case "eth_estimateGas":  # the node tries some twenty amounts of gas
            return limits.node_batch
        case "eth_getLogs":  # with the number of the newest block
            return 2 + (int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16)) // BLOCKS_OF_A_PRICE
    return 1


def _none(_rules: Rules, params: list[Any], _head: int) -> list[Any]:
    _count(params, 0, 0)
    return []


def _block(rules: Rules, params: list[Any], head: int) -> list[Any]:
    given, whole = _count(params, 1, 2)
    if whole not in (None, False):
        raise Fault(PARAMS, "blocks are read without their transactions")
    if given in HEAD_TAGS:
        return [hex(head), False]
    number = quantity(given, "the block")  # of any age: a page shows when an event was
    if number > head + rules.limits.blocks_ahead:
        raise Fault(PARAMS, "there is no such block yet")
    return [hex(number), False]


def _call(rules: Rules, params: list[Any], head: int) -> list[Any]:
    """Return a call with the gas that a usual one of its length needs.

    Without gas, it would run to the node's own limit.
    """
    call, block = _contract_call(rules, params, head)
    gas = max(rules.limits.call_gas, GAS_OF_A_WORD * (len(call["data"]) // HEX_OF_A_WORD))
    return [call | {"gas": hex(min(gas, rules.limits.most_call_gas))}, block]


def _estimate(rules: Rules, params: list[Any], head: int) -> list[Any]:
    call, block = _contract_call(rules, params, head)
    return [call | {"gas": hex(rules.limits.estimate_gas)}, block]


def _contract_call(rules: Rules, params: list[Any], head: int) -> tuple[dict[str, str], str]:
    given, block = _count(params, 1, 2)
    if not isinstance(given, dict):
        raise Fault(PARAMS, "the call must be an object")
    call = {"to": rules.contract(given.get("to"))}
    data = given.get("data", given.get("input", "0x"))
    call["data"] = _text(_DATA, data, "the data")
    if given.get("from") is not None:
        call["from"] = _text(_ADDRESS, given["from"], "the sender")
    if given.get("value") not in (None, "0x0", "0x"):
        raise Fault(PARAMS, "the contracts of this grid take no value")
    return call, rules.block(block, head)


def _of_account(rules: Rules, params: list[Any], head: int) -> list[Any]:
    address, block = _count(params, 1, 2)
    return [_text(_ADDRESS, address, "the address"), rules.block(block, head)]


def _count_of_account(rules: Rules, params: list[Any], head: int) -> list[Any]:
    if params[1:] == ["pending"]:  # with the transactions that are not mined yet
        return [_text(_ADDRESS, params[0], "the address"), "pending"]
    return _of_account(rules, params, head)


def _code(rules: Rules, params: list[Any], head: int) -> list[Any]:
    address, block = _count(params, 1, 2)
    return [rules.contract(address), rules.block(block, head)]


def _hash(_rules: Rules, params: list[Any], _head: int) -> list[Any]:
    return [_text(_HASH, _count(params, 1, 1)[0], "the hash")]


def _fees(rules: Rules, params: list[Any], head: int) -> list[Any]:
    blocks, newest, shares = _count(params, 2, 3)
    number = blocks if type(blocks) is int else quantity(blocks, "the number of blocks")
    if not 1 <= number <= MOST_FEE_BLOCKS:
        raise Fault(PARAMS, f"fees are read for at most {MOST_FEE_BLOCKS} blocks")
    if not isinstance(shares or [], list) or len(shares or []) > MOST_TOPICS:
        raise Fault(PARAMS, "the percentiles are malformed")
    if not all(type(one) in (int, float) and 0 <= one <= 100 for one in shares or []):
        raise Fault(PARAMS, "the percentiles are malformed")
    return [hex(number), rules.block(newest, head), shares or []]


def _logs(rules: Rules, params: list[Any], head: int) -> list[Any]:
    given = _count(params, 1, 1)[0]
    if not isinstance(given, dict) or "blockHash" in given:
        raise Fault(PARAMS, "events are read by fromBlock and toBlock")
    addresses = given.get("address")
    listed = addresses if isinstance(addresses, list) else [addresses]
    if not listed:
        raise Fault(PARAMS, "only contracts of this grid can be read here")
    first, last = (
        head if given.get(name) in HEAD_TAGS else quantity(given.get(name), name) for name in ("fromBlock", "toBlock")
    )
    if not 0 <= min(last, head) - first < rules.limits.log_blocks:
        raise Fault(PARAMS, f"events are read for at most {rules.limits.log_blocks} blocks at once")
    contracts, topics = sorted({rules.contract(address) for address in listed}), _topics(given.get("topics"))
    return [{"address": contracts, "fromBlock": hex(first), "toBlock": hex(min(last, head)), "topics": topics}]


def _topics(given: object) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MOST_TOPICS:
        raise Fault(PARAMS, "the topics are malformed")
    found: list[Any] = []
    for one in given:
        if isinstance(one, list) and len(one) <= MOST_OF_A_TOPIC:
            found.append([_text(_HASH, topic, "a topic") for topic in one])
        else:
            found.append(None if one is None else _text(_HASH, one, "a topic"))
    return found


def _transaction(rules: Rules, params: list[Any], _head: int) -> list[Any]:
    if not rules.transactions:
        raise Fault(NO_METHOD, "this relay takes no transactions; send them with the wallet's own node")
    raw = _text(_DATA, _count(params, 1, 1)[0], "the transaction")
    chain_id, to = _destination(raw)
    if to not in rules.contracts:
        raise Fault(PARAMS, "only transactions to contracts of this grid are sent here")
    if chain_id != rules.chain_id:
        raise Fault(PARAMS, "the transaction is for another chain")
    return [raw]


def _destination(raw: str) -> tuple[int, str]:
    """Return the chain of a signed transaction in hex, and the address that it calls, in lower case.

    The address is empty if the transaction is malformed, of an unknown type, or not of one chain.
    """
    content = bytes.fromhex(raw[2:])
    chain_at, to_at, fields = _TYPED.get(content[0], _LEGACY) if content else _LEGACY
    try:
        items = rlp.decode(content[1:] if content and content[0] in _TYPED else content)
        if len(items) != fields:
            return 0, ""
        number, to = int.from_bytes(items[chain_at], "big"), items[to_at]
    except (rlp.exceptions.RLPException, ValueError, TypeError, RecursionError):
        return 0, ""
    chain_id = number if content[0] in _TYPED else (number - 35) // 2
    return chain_id, f"0x{to.hex()}" if isinstance(to, bytes) and len(to) == 20 else ""


_CHECKS: dict[str, Callable[[Rules, list[Any], int], list[Any]]] = {
    "eth_getBlockByNumber": _block,
    "eth_call": _call,
    "eth_estimateGas": _estimate,
    "eth_getLogs": _logs,
    "eth_getTransactionReceipt": _hash,
    "eth_getTransactionByHash": _hash,
    "eth_getBalance": _of_account,
    "eth_getTransactionCount": _count_of_account,
    "eth_getCode": _code,
    "eth_gasPrice": _none,
    "eth_maxPriorityFeePerGas": _none,
    "eth_feeHistory": _fees,
    "eth_sendRawTransaction": _transaction,
}
# Position of the block in reads whose answer is the same when the head moves on.
_BLOCK_AT = {"eth_getBlockByNumber": 0, "eth_call": 1, "eth_estimateGas": 1, "eth_getBalance": 1, "eth_getCode": 1}
SENT, LOGS = "eth_sendRawTransaction", "eth_getLogs"
