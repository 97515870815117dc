"""Sessions: a wallet signs once, and for some hours a P-256 key signs requests in its place.

A session key has rights, never all that its wallet may do. `docs/reference/protocol.md` defines the format.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Literal, Self, get_args

from eth_utils.address import to_canonical_address

from deepgrid.chain.transactions.eth_accounts import LocalAccount, SignableMessage
from deepgrid.services.signing.signatures import WALLET_SIGNATURE, BadRequestSignature, Domain, eip712_types, signer_of

SESSION_HEADER = "X-Grid-Session"
MAX_LIFETIME_S = 12 * 3600
CLOCK_SLACK_S = 300  # by which the clock of the session's author may be ahead of the service's

TYPES = eip712_types("Session", publicKey="bytes", notAfter="uint256", rights="string", origin="string")

Right = Literal["read", "store", "shell"]
Rights = Literal["read", "store", "shell", "read,store", "read,shell", "store,shell", "read,store,shell"]

_PARTS = {
    "public key": re.compile(r"0x04[0-9a-fA-F]{128}"),
    "end": re.compile(r"[1-9][0-9]{0,11}"),
    "rights": re.compile("|".join(get_args(Rights))),
    "origin": re.compile(r"(https?://[a-z0-9.:\[\]_-]{1,255})?"),
    "signature": WALLET_SIGNATURE,
}


@dataclass(frozen=True, slots=True)
class Session:
    """The text that a wallet has signed: this P-256 key has these rights until `not_after` (unix seconds).

    `public_key` is an uncompressed point of 65 bytes. `origin` is the web origin whose pages use the key; it is
    empty for programs.
    """

    public_key: bytes
    not_after: int
    rights: str
    origin: str
    signature: bytes = field(repr=False)

    @classmethod
    def signed_by(
        cls, account: LocalAccount, domain: Domain, public_key: bytes, not_after: int, rights: Rights, origin: str
    ) -> Self:
        """Return the session, signed by the wallet of `account`."""
        message = _message(domain, public_key, not_after, rights, origin)
        return cls(public_key, not_after, rights, origin, bytes(account.sign_message(message).signature))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a header. Raises BadRequestSignature."""
        parts = text.split(";") if len(text) < 1024 else []
        if len(parts) != len(_PARTS):
            raise BadRequestSignature(f"{SESSION_HEADER} is malformed")
        for part, (name, form) in zip(parts, _PARTS.items(), strict=True):
            if not form.fullmatch(part):
                raise BadRequestSignature(f"{SESSION_HEADER} is malformed: its {name}")
        key, end, rights, origin, signature = parts
        return cls(bytes.fromhex(key[2:]), int(end), rights, origin, bytes.fromhex(signature[2:]))

    def header(self) -> str:
        parts = ("0x" + self.public_key.hex(), str(self.not_after), self.rights, self.origin)
        return ";".join((*parts, "0x" + self.signature.hex()))

    def has(self, *rights: Right) -> bool:
        """Return whether the session has one of these rights."""
        return not set(rights).isdisjoint(self.rights.split(","))

    def wallet(self, domain: Domain) -> str:
        """Return the address of the wallet that signed the session for this grid. Raises BadRequestSignature."""
        return signer_of(_message(domain, self.public_key, self.not_after, self.rights, self.origin), self.signature)

    def key_hash(self, address: str) -> str:
        """Return a name for the key of this wallet. If another wallet signs the same key, its name differs."""
        return hashlib.sha256(to_canonical_address(address) + self.public_key).hexdigest()

    def require_current(self, now: int) -> None:
        """Raise BadRequestSignature if the session has ended, or lasts longer than a session may."""
        if now > self.not_after:
            raise BadRequestSignature(f"the session ended {now - self.not_after} s ago")
        if self.not_after - now > MAX_LIFETIME_S + CLOCK_SLACK_S:
            raise BadRequestSignature(f"the session ends more than {MAX_LIFETIME_S // 3600} hours ahead")

    def require_wallet(self, domain: Domain, address: str) -> None:
        """Raise BadRequestSignature if another wallet signed the session, or this one for another grid."""
        if self.wallet(domain) != address:
            raise BadRequestSignature("the session is not signed by the address, for this grid and chain")

    def require_signed(self, content: bytes, signature: bytes) -> None:
        """Raise BadRequestSignature if the session key did not sign `content`. Needs the extra `services`."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        try:
            key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), self.public_key)
            key.verify(utils.encode_dss_signature(r, s), content, ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise BadRequestSignature(
                "the signature does not match the session key, for this request, grid and chain"
            ) from None
        except ValueError:
            raise BadRequestSignature("the session's public key is not a point of P-256") from None


def _message(domain: Domain, public_key: bytes, not_after: int, rights: str, origin: str) -> SignableMessage:
    values = {"publicKey": public_key, "notAfter": not_after, "rights": rights, "origin": origin}
    return domain.message(TYPES, values)
