"""Signs requests to the grid's services, and checks signatures.

A request has an EIP-712 signature of its method, path with query, body hash, time and a nonce, in the domain of
one grid (chain id and MetaScheduler). So it cannot be forged, changed, replayed, kept for later or sent to another
grid. A wallet signs it, or a session key of the wallet. `docs/reference/protocol.md` defines the format.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from eth_utils.address import is_address, to_checksum_address
from eth_utils.crypto import keccak

from deepgrid.chain.transactions.eth_accounts import LocalAccount, SignableMessage
from deepgrid.services.signing.session_keys import SESSION_HEADER, Session
from deepgrid.services.signing.signatures import (
    WALLET_SIGNATURE,
    BadRequestSignature,
    Domain,
    digest,
    eip712_types,
    require_canonical,
    signer_of,
)

__all__ = ["BadRequestSignature", "Domain", "Verified", "sign", "verify"]

WINDOW_S = 300  # most difference between a request's time and the service's clock

ADDRESS_HEADER = "X-Grid-Address"
ISSUED_AT_HEADER = "X-Grid-Issued-At"
NONCE_HEADER = "X-Grid-Nonce"
SIGNATURE_HEADER = "X-Grid-Signature"

TYPES = eip712_types("Request", method="string", path="string", bodyHash="bytes32", issuedAt="uint256", nonce="bytes32")

_TIME = re.compile(r"[0-9]{1,12}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SESSION_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{128}")


@dataclass(frozen=True, slots=True)
class Verified:
    """The signer of a request: a wallet, or a session key of the wallet.

    `nonce` must be unused by this signer until `expires_at` (unix seconds).
    """

    address: str
    nonce: bytes
    expires_at: int
    session: Session | None = None

    @property
    def issued_at(self) -> int:
        """When the request was signed, by the clock of its signer."""
        return self.expires_at - 2 * WINDOW_S

    @property
    def signer(self) -> str:
        """Name of the key that signed."""
        return self.address if self.session is None else f"{self.address}/{self.session.key_hash(self.address)}"


def sign(account: LocalAccount, domain: Domain, method: str, path: str, body: bytes, now: int) -> dict[str, str]:
    """Return headers by which a wallet signs a request at `now` (unix seconds), with a fresh nonce.

    `path` includes the query.
    """
    nonce = secrets.token_bytes(32)
    signed = account.sign_message(message_of(domain, method, path, body, now, nonce))
    return headers_of(account.address, now, nonce, bytes(signed.signature))


def require_form(headers: Mapping[str, str], now: int) -> None:
    """Raise BadRequestSignature if a header is missing, malformed or too old, for any body."""
    _parse_headers(headers, now)


def verify(domain: Domain, method: str, path: str, body: bytes, headers: Mapping[str, str], now: int) -> Verified:
    """Return the signer of this request. Raises BadRequestSignature.

    The caller checks the nonce, and what a session key may do.
    """
    found = _parse_headers(headers, now)
    message = message_of(domain, method, path, body, found.issued_at, found.nonce)
    if found.session is not None:
        found.session.require_wallet(domain, found.address)
        found.session.require_signed(digest(message), found.signature)
    elif signer_of(message, found.signature) != found.address:
        raise BadRequestSignature("the signature does not match the address, for this request, grid and chain")
    return Verified(found.address, found.nonce, found.issued_at + 2 * WINDOW_S, found.session)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The headers, checked as far as possible without the body."""

    address: str
    issued_at: int
    nonce: bytes
    signature: bytes
    session: Session | None


def _parse_headers(headers: Mapping[str, str], now: int) -> _Parsed:
    address = _header(headers, ADDRESS_HEADER)
    issued_at = int(_header(headers, ISSUED_AT_HEADER, _TIME))
    nonce = bytes.fromhex(_header(headers, NONCE_HEADER, _NONCE)[2:])
    by_session = SESSION_HEADER in headers
    form = _SESSION_SIGNATURE if by_session else WALLET_SIGNATURE
    signature = bytes.fromhex(_header(headers, SIGNATURE_HEADER, form)[2:])
    if abs(now - issued_at) > WINDOW_S:
        raise BadRequestSignature(f"the request's time is {abs(now - issued_at)} s off the service's clock")
    if not is_address(address):
        raise BadRequestSignature(f"{ADDRESS_HEADER} is not an address")
    session = None
    if by_session:
        session = Session.parse(headers[SESSION_HEADER])
        session.require_current(now)
    else:
        require_canonical(signature)
    return _Parsed(to_checksum_address(address), issued_at, nonce, signature, session)


def message_of(domain: Domain, method: str, path: str, body: bytes, issued_at: int, nonce: bytes) -> SignableMessage:
    """Return the typed data of a request."""
    values = {"method": method, "path": path, "bodyHash": keccak(body), "issuedAt": issued_at, "nonce": nonce}
    return domain.message(TYPES, values)


def headers_of(address: str, now: int, nonce: bytes, signature: bytes) -> dict[str, str]:
    """Return the headers that every signed request has."""
    return {
        ADDRESS_HEADER: address,
        ISSUED_AT_HEADER: str(now),
        NONCE_HEADER: "0x" + nonce.hex(),
        SIGNATURE_HEADER: "0x" + signature.hex(),
    }


def _header(headers: Mapping[str, str], name: str, form: re.Pattern[str] | None = None) -> str:
    value = headers.get(name)
    if value is None:
        raise BadRequestSignature(f"the request is not signed: {name} is missing")
    if form is not None and not form.fullmatch(value):
        raise BadRequestSignature(f"{name} is malformed")
    return value
