"""The bytes of a receipt, and the provider's signature on them.

The signature is EIP-712, in the domain of one grid, so it is worth nothing on another chain or contract.
`docs/reference/protocol.md` defines the format.
"""

from __future__ import annotations

import json

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from pydantic import ValidationError

from deepgrid.chain.transactions.eth_accounts import LocalAccount, SignableMessage
from deepgrid.errors import InputError
from deepgrid.services.receipts.contents import Contents, Part, Receipt
from deepgrid.services.signing.signatures import BadRequestSignature, Domain, eip712_types, signer_of

MAX_RECEIPT_BYTES = 64 * 1024

TYPES = eip712_types(
    "Receipt",
    jobId="uint256",
    customer="address",
    provider="address",
    claimedAt="uint256",
    definitionHash="string",
    evidenceHash="bytes32",
    billedMinutes="uint256",
    paidWei="uint256",
    cutWei="uint256",
    refundedWei="uint256",
    contentsHash="bytes32",
)


def sign_receipt(account: LocalAccount, contents: Contents) -> bytes:
    """Return the receipt's bytes, signed by its provider."""
    signature = account.sign_message(message_of(contents)).signature
    whole = Receipt(evidence_hash=_hash(contents.evidence), receipt=contents, signature=f"0x{bytes(signature).hex()}")
    return canonical(whole)


def read_receipt(data: bytes) -> Receipt:
    """Return the receipt in `data`, with everything checked that needs no chain.

    Raises InputError unless these are the bytes that its provider signed, and its amounts add up.
    """
    if len(data) > MAX_RECEIPT_BYTES:
        raise InputError(f"A receipt has at most {MAX_RECEIPT_BYTES // 1024} KiB; this file is larger.")
    try:
        found = Receipt.model_validate_json(data)
    except (ValidationError, RecursionError):
        raise InputError("This is not a receipt of a job: a field is missing, unknown or malformed.") from None
    if canonical(found) != data:
        raise InputError("The receipt is not in its canonical form, so the file was changed.")
    contents = found.receipt
    if found.evidence_hash != _hash(contents.evidence):
        raise InputError("The receipt's evidence is not what its hash says.")
    for address in (contents.meta_scheduler, contents.customer, contents.provider):
        if address != to_checksum_address(address):
            raise InputError(f"The receipt has an address with a wrong checksum: {address}.")
    _require_signature(found)
    _require_sums(contents)
    return found


def canonical(part: Part) -> bytes:
    """Return the only valid encoding of these values: sorted keys, no spaces, UTF-8, one line end at the end."""
    text = json.dumps(part.model_dump(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "strict") + b"\n"


def message_of(contents: Contents) -> SignableMessage:
    """Return the typed data that the provider signs."""
    money = contents.money
    values = {
        "jobId": contents.job_id,
        "customer": contents.customer,
        "provider": contents.provider,
        "claimedAt": contents.times.claimed_at,
        "definitionHash": contents.asked.definition_hash,
        "evidenceHash": bytes.fromhex(_hash(contents.evidence)[2:]),
        "billedMinutes": contents.minutes.billed,
        "paidWei": int(money.paid_wei),
        "cutWei": int(money.cut_wei),
        "refundedWei": int(money.refunded_wei),
        "contentsHash": keccak(canonical(contents)),
    }
    return Domain(contents.chain_id, contents.meta_scheduler).message(TYPES, values)


def _hash(part: Part) -> str:
    return f"0x{keccak(canonical(part)).hex()}"


def _require_signature(found: Receipt) -> None:
    provider = found.receipt.provider
    try:
        signer = signer_of(message_of(found.receipt), bytes.fromhex(found.signature[2:]))
    except (BadRequestSignature, ValueError, OverflowError):
        raise InputError("The receipt's signature is malformed.") from None
    if signer != provider:
        raise InputError(f"The receipt is not signed by its provider {provider}.")


def _require_sums(contents: Contents) -> None:
    money = contents.money
    adds_up = (
        int(money.deposit_wei) + int(money.top_ups_wei) == int(money.locked_wei)
        and int(money.paid_wei) + int(money.cut_wei) == int(money.cost_wei)
        and int(money.cost_wei) + int(money.refunded_wei) == int(money.locked_wei)
    )
    if not adds_up:
        raise InputError("The receipt's amounts do not add up.")
