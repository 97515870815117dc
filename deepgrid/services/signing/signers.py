"""Signers of a client's requests: the wallet, or a session key of the wallet."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

from deepgrid.chain.transactions.eth_accounts import LocalAccount, SignableMessage
from deepgrid.services.signing.request_signing import headers_of, message_of, sign
from deepgrid.services.signing.session_keys import MAX_LIFETIME_S, SESSION_HEADER, Rights, Session
from deepgrid.services.signing.signatures import Domain, digest

if TYPE_CHECKING:
    from Crypto.PublicKey.ECC import EccKey


class Signer(Protocol):
    """Signs requests of one wallet."""

    def headers(self, domain: Domain, method: str, path: str, body: bytes, now: int) -> dict[str, str]:
        """Return the headers that sign a request at `now` (unix seconds), with a fresh nonce.

        `path` includes the query.
        """
        ...

    def sign_message(self, message: SignableMessage) -> tuple[bytes, str]:
        """Return the signature of typed data, and the header of the session whose key signed; empty for a wallet."""
        ...


@dataclass(frozen=True, slots=True)
class WalletSigner:
    """The wallet itself. It may do everything."""

    account: LocalAccount = field(repr=False)

    def headers(self, domain: Domain, method: str, path: str, body: bytes, now: int) -> dict[str, str]:
        return sign(self.account, domain, method, path, body, now)

    def sign_message(self, message: SignableMessage) -> tuple[bytes, str]:
        return bytes(self.account.sign_message(message).signature), ""


class SessionKey:
    """A new P-256 key that signs a wallet's requests for some hours, within its rights.

    It exists in this process only. Its wallet is not kept.
    """

    def __init__(self, address: str, session: Session, key: EccKey) -> None:
        self.address = address
        self.session = session
        self._key = key

    @classmethod
    def create(
        cls,
        account: LocalAccount,
        domain: Domain,
        rights: Rights = "read,store",
        *,
        origin: str = "",
        lifetime_s: int = MAX_LIFETIME_S,
        now: int | None = None,
    ) -> Self:
        """Make a key, and let the wallet sign its session.

        Args:
            account: The wallet. It signs once.
            domain: The grid for which the session is valid.
            rights: `read` reads logs and releases, `store` uploads definitions, `shell` gets into running jobs.
            origin: The web origin whose pages use the key; empty for programs.
            lifetime_s: Seconds until the session ends, 12 hours at most.
            now: Unix seconds by the service's clock; the time of this machine if it is None.

        Returns:
            A signer for `ServicesClient`.
        """
        from Crypto.PublicKey import ECC  # here, as below: most clients sign with their wallet

        key = ECC.generate(curve="P-256")
        public_key = bytes(key.public_key().export_key(format="raw"))
        not_after = (int(time.time()) if now is None else now) + lifetime_s
        return cls(account.address, Session.signed_by(account, domain, public_key, not_after, rights, origin), key)

    def headers(self, domain: Domain, method: str, path: str, body: bytes, now: int) -> dict[str, str]:
        nonce = secrets.token_bytes(32)
        signature = self.sign(digest(message_of(domain, method, path, body, now, nonce)))
        return {**headers_of(self.address, now, nonce, signature), SESSION_HEADER: self.session.header()}

    def sign_message(self, message: SignableMessage) -> tuple[bytes, str]:
        return self.sign(digest(message)), self.session.header()

    def sign(self, content: bytes) -> bytes:
        """Return ECDSA with SHA-256: r and s in 64 bytes, as WebCrypto gives them."""
        from Crypto.Hash import SHA256
        from Crypto.Signature import DSS

        return bytes(DSS.new(self._key, "deterministic-rfc6979").sign(SHA256.new(content)))

    def __repr__(self) -> str:
        return f"SessionKey({self.address}, {self.session.rights!r}, not_after={self.session.not_after})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A session key stays in its process.")
