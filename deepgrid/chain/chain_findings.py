"""Findings on a node that answers and on the gas money of a wallet, for the doctors and processes of all roles."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.node import Block, Node
from deepgrid.chain.node.values import ZERO_ADDRESS
from deepgrid.findings import Finding, Level

MAX_CLOCK_SKEW_S = 60.0
PROBED_BATCH, PROBED_BLOCKS = 100, 2000  # as large as the grid's own requests
LOW_GAS_UNITS = 100


@dataclass(frozen=True, slots=True)
class GasUse:
    """The gas costs of a role, by its units of work, such as jobs.

    The steps say how to get the first coins, and more.
    """

    units: str
    gas_per_unit: int
    first_step: str
    more_step: str


# The gas of the three calls per job, with a margin.
PROVIDER_GAS = GasUse("jobs", 250_000, "Ask the operator for gas money.", "Get more before it ends.")
OPERATOR_GAS = GasUse("rounds", 500_000, "Run dps gas transfer {address} 1.", "Send more.")


def judge_head(book: AddressBook, head: Block) -> Finding:
    return Finding("chain", Level.GOOD, f"Chain {book.chain_id} is at block {head.number}.")


async def examine_node(node: Node, first_block: int) -> list[Finding]:
    """Return a warning of the usual features that the node lacks, and of the price. No finding if it lacks none."""
    head = await node.head()
    has_fees = (await node.rpc.call("eth_getBlockByNumber", hex(head.number), False)).get("baseFeePerGas") is not None
    await node.rpc.results([("eth_chainId", [])] * PROBED_BATCH)
    await node.logs(ZERO_ADDRESS, max(first_block, head.number - PROBED_BLOCKS + 1), head.number)
    lacks = []
    if not has_fees:
        lacks.append("EIP-1559, so each transaction offers the price that the node names (eth_gasPrice)")
    if node.rpc.largest_batch == 1:
        lacks.append("JSON-RPC batches, so each read is a request of its own")
    elif node.rpc.largest_batch < PROBED_BATCH:
        lacks.append(f"batches of more than {node.rpc.largest_batch} requests, so reads take more of them")
    if node.log_pages.longest is not None:
        lacks.append(f"logs of more than {node.log_pages.longest} blocks at once, so histories and books take longer")
    words = f"The node lacks {'; and '.join(lacks)}."
    return [Finding("node", Level.WARNING, words, "Use another node if the grid is slow.")] if lacks else []


def judge_clock(block_time: int) -> Finding:
    """Return the finding on the clock. A block may be old on a chain that makes blocks on demand.

    It is never from the future.
    """
    ahead_s = block_time - time.time()
    if ahead_s > MAX_CLOCK_SKEW_S:
        words = f"The newest block is {ahead_s:.0f} s ahead of this machine's clock."
        return Finding("clock", Level.WARNING, words, "Run an NTP client.")
    return Finding("clock", Level.GOOD, "This machine's clock is not behind the chain's.")


def judge_lease(file: Path | None) -> list[Finding]:
    """Return whether this account can take turns with its key. No finding if it can."""
    if file is None or not file.exists() or os.access(file, os.R_OK | os.W_OK):
        return []
    what = f"{file} belongs to another account, so nothing can be sent with this key."
    return [Finding("key", Level.BAD, what, "Give the file to this account.")]


def judge_gas(use: GasUse, address: str, money: int, price: int) -> Finding:
    """Return whether the gas money of `address`, in wei, lasts for a while at this price of gas in wei."""
    units = money // (max(2 * price, 1) * use.gas_per_unit)  # at twice the current price
    if money == 0:
        return Finding("gas", Level.BAD, f"{address} cannot pay for gas.", use.first_step.format(address=address))
    if units < LOW_GAS_UNITS:
        return Finding("gas", Level.WARNING, f"The gas money lasts for about {units} {use.units}.", use.more_step)
    return Finding("gas", Level.GOOD, f"The gas money lasts for more than {LOW_GAS_UNITS} {use.units}.")
