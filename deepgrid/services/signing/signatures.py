"""EIP-712 signatures of wallets, in the domain of one grid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

from deepgrid.chain.transactions.eth_accounts import Account, SignableMessage, encode_typed_data

WALLET_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")

_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def eip712_types(name: str, **fields: str) -> dict[str, list[dict[str, str]]]:
    """Return the EIP-712 description of a struct: its fields in order, each with its type."""
    return {name: [{"name": field, "type": kind} for field, kind in fields.items()]}


@dataclass(frozen=True, slots=True)
class Domain:
    """The grid for which a signature is valid."""

    chain_id: int
    verifying_contract: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": "deepgrid",
            "version": "1",
            "chainId": self.chain_id,
            "verifyingContract": self.verifying_contract,
        }

    def message(self, types: dict[str, Any], values: dict[str, Any]) -> SignableMessage:
        """Return the typed data to sign for this grid."""
        return encode_typed_data(self.as_dict(), types, values)


class BadRequestSignature(Exception):
    """The request has no valid signature. The text says why."""


def digest(message: SignableMessage) -> bytes:
    """Return the 32 bytes that a wallet signs."""
    return keccak(b"\x19" + message.version + message.header + message.body)


def signer_of(message: SignableMessage, signature: bytes) -> str:
    """Return the address of the signer, with checksum.

    Raises BadRequestSignature for a malformed or malleable signature.
    """
    require_canonical(signature)
    try:
        return str(Account.recover_message(message, signature=signature))
    except (BadSignature, ValidationError, ValueError):
        raise BadRequestSignature("the signature is malformed") from None


def require_canonical(signature: bytes) -> None:
    """Refuse malleable signatures: the twin of a signature, with the other s, was not made by the signer."""
    r, s, v = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"), signature[64]
    if not (0 < r < _CURVE_ORDER and 0 < s <= _CURVE_ORDER // 2 and v in (27, 28)):
        raise BadRequestSignature("the signature is malformed")
