"""The hash by which the operator approves exactly the proposal that was looked at."""

from __future__ import annotations

from eth_utils.crypto import keccak

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_hardware, coded_labels, coded_prices
from deepgrid.lifecycle.job import Provider

SELECTOR_DIGITS = len("0x") + 8


def proposal_hash(proposed: Provider) -> bytes:
    """keccak256 of the ABI-coded hardware, prices and labels: of the arguments of `register`, as the contract has it.

    Compute it from what was read and judged, never read it from the chain. A label that is not UTF-8 is read with
    replacement characters, so such a proposal has another hash on chain and cannot be approved.
    """
    arguments = coded_hardware(proposed.hardware), coded_prices(proposed.prices), coded_labels(proposed.labels)
    call = interface("ProviderManager").encode("register", *arguments)
    return keccak(bytes.fromhex(call[SELECTOR_DIGITS:]))
