"""Signs requests to the grid's services, and checks signatures.

A request has an EIP-712 signature of its method, path with query, body hash, time and a nonce, in the domain of
one grid (chain id and MetaScheduler). So it cannot be forged, changed, replayed, kept for later or sent to another
grid. `docs/reference/protocol.md` defines the format.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eth_account import Account
from eth_account.messages import SignableMessage, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from eth_utils.address import is_address, to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

WINDOW_S = 300  # most difference between a request's time and the service's clock

ADDRESS_HEADER = "X-Grid-Address"
ISSUED_AT_HEADER = "X-Grid-Issued-At"
NONCE_HEADER = "X-Grid-Nonce"
SIGNATURE_HEADER = "X-Grid-Signature"

TYPES = {
    "Request": [
        {"name": "method", "type": "string"},
        {"name": "path", "type": "string"},
        {"name": "bodyHash", "type": "bytes32"},
        {"name": "issuedAt", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}

_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_TIME = re.compile(r"[0-9]{1,12}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")


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


@dataclass(frozen=True, slots=True)
class Verified:
    """The signer of a request. `nonce` must be unused by this signer until `expires_at` (unix seconds)."""

    address: str
    nonce: bytes
    expires_at: int


class BadRequestSignature(Exception):
    """The request has no valid signature. The text tells the caller why."""


def sign(account: LocalAccount, domain: Domain, method: str, path: str, body: bytes, now: int) -> dict[str, str]:
    """Headers that sign a request at `now` (unix seconds), with a fresh nonce. `path` includes the query."""
    nonce = secrets.token_bytes(32)
    signed = account.sign_message(_message(domain, method, path, body, now, nonce))
    return {
        ADDRESS_HEADER: account.address,
        ISSUED_AT_HEADER: str(now),
        NONCE_HEADER: "0x" + nonce.hex(),
        SIGNATURE_HEADER: "0x" + bytes(signed.signature).hex(),
    }


def require_form(headers: Mapping[str, str], now: int) -> None:
    """Raise BadRequestSignature if a header is missing, malformed or too old, whatever the body is."""
    _parsed_headers(headers, now)


def verify(domain: Domain, method: str, path: str, body: bytes, headers: Mapping[str, str], now: int) -> Verified:
    """The signer of this request. Raises BadRequestSignature. The caller checks the nonce."""
    address, issued_at, nonce, signature = _parsed_headers(headers, now)
    signer = _signer(_message(domain, method, path, body, issued_at, nonce), signature)
    if signer != to_checksum_address(address):
        raise BadRequestSignature("the signature is not that of the address, for this request, grid and chain")
    return Verified(signer, nonce, issued_at + 2 * WINDOW_S)


def _parsed_headers(headers: Mapping[str, str], now: int) -> tuple[str, int, bytes, bytes]:
    """Address, time, nonce and signature, checked as far as possible without the body."""
    address = _header(headers, ADDRESS_HEADER)
    issued_at = int(_header(headers, ISSUED_AT_HEADER, _TIME))
    nonce = bytes.fromhex(_header(headers, NONCE_HEADER, _NONCE)[2:])
    signature = bytes.fromhex(_header(headers, SIGNATURE_HEADER, _SIGNATURE)[2:])
    if abs(now - issued_at) > WINDOW_S:
        raise BadRequestSignature(f"the request's time is {abs(now - issued_at)} s off the service's clock")
    if not is_address(address):
        raise BadRequestSignature(f"{ADDRESS_HEADER} is not an address")
    _require_canonical(signature)
    return address, issued_at, nonce, signature


def _message(domain: Domain, method: str, path: str, body: bytes, issued_at: int, nonce: bytes) -> SignableMessage:
    values = {"method": method, "path": path, "bodyHash": keccak(body), "issuedAt": issued_at, "nonce": nonce}
    return encode_typed_data(domain.as_dict(), TYPES, values)


def _signer(message: SignableMessage, signature: bytes) -> str:
    """Address of the signer."""
    try:
        return str(Account.recover_message(message, signature=signature))
    except (BadSignature, ValidationError, ValueError):
        raise BadRequestSignature("the signature is malformed") from None


def _require_canonical(signature: bytes) -> None:
    """Refuse malleable signatures: the twin of a signature, with the other s, was not made by the signer."""
    r, s, v = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"), signature[64]
    if not (0 < r < _CURVE_ORDER and 0 < s <= _CURVE_ORDER // 2 and v in (27, 28)):
        raise BadRequestSignature("the signature is malformed")


def _header(headers: Mapping[str, str], name: str, form: re.Pattern[str] | None = None) -> str:
    value = headers.get(name)
    if value is None:
        raise BadRequestSignature(f"the request is not signed: {name} is missing")
    if form is not None and not form.fullmatch(value):
        raise BadRequestSignature(f"{name} is malformed")
    return value
