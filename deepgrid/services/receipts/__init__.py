"""Receipts of jobs: their one form of bytes, the provider's signature, and their comparison with the chain.

A receipt is valid in exactly one form. Any other bytes are refused, even if they mean the same.
"""

from deepgrid.services.receipts.chain_check import differences_from, require_same_on_chain
from deepgrid.services.receipts.contents import (
    Asked,
    Contents,
    Entry,
    Evidence,
    Minutes,
    Money,
    Place,
    Receipt,
    Times,
)
from deepgrid.services.receipts.signed import MAX_RECEIPT_BYTES, read_receipt, sign_receipt

__all__ = [
    "MAX_RECEIPT_BYTES",
    "Asked",
    "Contents",
    "Entry",
    "Evidence",
    "Minutes",
    "Money",
    "Place",
    "Receipt",
    "Times",
    "differences_from",
    "read_receipt",
    "require_same_on_chain",
    "sign_receipt",
]
