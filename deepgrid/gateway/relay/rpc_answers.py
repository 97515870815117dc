"""Results and errors of JSON-RPC, coded once for all pages that ask for them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from deepgrid.chain.node.node_errors import NodeRefused

PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
LIMIT = -32005
FAILED = -32000
REVERTED = 3
LONGEST_REVERT = 10_000  # bytes

# What a customer or a wallet can act on. Other texts of a node are not shown: they may name it, or hold its key.
_KNOWN = re.compile(
    "nonce too low|nonce too high|already known|replacement transaction underpriced|transaction underpriced"
    "|insufficient funds|max fee per gas less than block base fee|intrinsic gas too low|gas limit|out of gas"
    "|gas required exceeds allowance|invalid chain id|insufficient allowance"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The coded member `result` or `error` of an answer, and whether it holds for good at its block."""

    member: bytes
    is_final: bool = True


def result(value: Any) -> Answer:
    return Answer(b'"result":' + json.dumps(value, separators=(",", ":")).encode())


def error(code: int, sentence: str, data: str | None = None, *, is_final: bool = False) -> Answer:
    content: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        content["data"] = data
    return Answer(b'"error":' + json.dumps(content).encode(), is_final)


class Fault(Exception):
    """A call that is not passed on. `answer` says why."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.answer = error(code, sentence)


class TooMuch(Fault):
    """The source address may ask the node nothing more at the moment."""

    def __init__(self, sentence: str) -> None:
        super().__init__(LIMIT, sentence)


def silent() -> Answer:
    return error(FAILED, "the chain's node does not answer at the moment")


def of_node(method: str, found: Any, most: int) -> Answer:
    """Return the meaning of one result or refusal of the node for a page."""
    if not isinstance(found, NodeRefused):
        answer = replace(result(found), is_final=found is not None)  # it may come yet
        if len(answer.member) > most:
            return error(LIMIT, f"the answer is larger than {most} bytes; read less at once", is_final=True)
        return answer
    if found.code == REVERTED or found.says("revert"):
        data = found.data if found.data and len(found.data) <= LONGEST_REVERT else b""
        return error(REVERTED, "execution reverted", f"0x{data.hex()}", is_final=True)
    if found.is_busy:
        return error(LIMIT, "the chain's node is busy; try again in a few seconds")
    known = _KNOWN.search(found.reason.lower())
    return error(FAILED, known[0] if known else f"the chain's node refused {method}")


def full_answer(coded_id: bytes, answer: Answer) -> bytes:
    """Return the complete answer to a call with this id."""
    return b'{"jsonrpc":"2.0","id":' + coded_id + b"," + answer.member + b"}"
