"""The key agreement of a tunnel, and its encryption.

Both sides sign a fresh X25519 key in the grid's EIP-712 domain: the customer's wallet, or a session key with the right
`shell`; and the provider's wallet. The provider's signature covers the customer's opening. So neither can be replaced,
or used for another job, claim or tunnel. The keys of both directions come from the shared secret by HKDF-SHA256. Its
salt is the hash of both signed messages. Each message is encrypted with AES-256-GCM. Its number in its direction is the
nonce. So a message that is dropped, repeated, moved or changed ends the tunnel. `docs/reference/sessions.md` defines
the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from eth_utils.crypto import keccak
from pydantic import Field, StringConstraints

from deepgrid.chain.transactions.eth_accounts import LocalAccount, SignableMessage
from deepgrid.lifecycle.job import Job
from deepgrid.services.messages import Message
from deepgrid.services.signing.request_signing import WINDOW_S
from deepgrid.services.signing.session_keys import Session
from deepgrid.services.signing.signatures import BadRequestSignature, Domain, digest, eip712_types, signer_of
from deepgrid.services.signing.signers import Signer
from deepgrid.services.tunnels.tunnel_frames import MAX_FRAME

TAG_BYTES = 16
MAX_SEALED = MAX_FRAME + TAG_BYTES
INFO = b"deepgrid tunnel 1"
_KEY_BYTES = 32

OPENING = eip712_types(
    "Tunnel", jobId="uint256", claimedAt="uint256", provider="address", publicKey="bytes32", issuedAt="uint256"
)
ANSWER = eip712_types("TunnelAnswer", opening="bytes32", publicKey="bytes32")

LONGEST_ANSWER = 4096  # bytes of the first message, which is in clear text and signed
MAX_MESSAGE = MAX_SEALED + LONGEST_ANSWER
MOST_INVITATIONS = 64  # in one answer of the services

Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PublicKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class TunnelBroken(Exception):
    """A message of a tunnel is not what the other side sent next."""


class TunnelOpening(Message):
    """A customer's signed key. `session` is the header of the session whose key signed; empty for the wallet."""

    claimed_at: Annotated[int, Field(ge=0, lt=2**53)]
    public_key: PublicKey
    issued_at: Annotated[int, Field(ge=0, lt=2**53)]
    signature: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}([0-9a-f]{2})?$")]
    session: Annotated[str, Field(max_length=1023)] = ""

    def hash(self) -> bytes:
        """Return the hash of all of it, which the provider signs."""
        return keccak(self.model_dump_json().encode())


class TunnelAnswer(Message):
    """The provider's signed key, or why there is no tunnel."""

    public_key: PublicKey | None = None
    signature: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{130})?$")] = ""
    refused: Annotated[str, Field(max_length=500)] = ""


class TunnelToken(Message):
    """The token of the customer's connection."""

    token: Token


class Invitation(Message):
    """A customer's opening, and the token of the supervisor's connection."""

    token: Token
    job_id: int
    opening: TunnelOpening


class Invitations(Message):
    """What customers opened since the last answer."""

    invitations: Annotated[list[Invitation], Field(max_length=MOST_INVITATIONS)]


class SealedChannel:
    """Seals and opens the messages of one side, in order."""

    def __init__(self, sending: bytes, receiving: bytes) -> None:
        self._sending, self._receiving = AESGCM(sending), AESGCM(receiving)
        self._sent = self._received = 0

    def seal(self, message: bytes) -> bytes:
        """Return the next message, encrypted."""
        number, self._sent = self._sent, self._sent + 1
        return self._sending.encrypt(number.to_bytes(12, "big"), message, None)

    def open(self, sealed: bytes) -> bytes:
        """Return the next message of the other side. Raises TunnelBroken."""
        try:
            message = self._receiving.decrypt(self._received.to_bytes(12, "big"), sealed, None)
        except (InvalidTag, ValueError):
            raise TunnelBroken("a message was changed, lost or repeated in transit") from None
        self._received += 1
        return message


@dataclass(frozen=True, slots=True)
class OpeningTunnel:
    """A tunnel that its customer has opened, and that the provider has not answered yet."""

    opening: TunnelOpening
    domain: Domain
    provider: str
    _key: X25519PrivateKey = field(repr=False)

    @classmethod
    def to(cls, job: Job, signer: Signer, domain: Domain, now: int) -> OpeningTunnel:
        """Open a tunnel to the provider that has claimed the job. `signer` signs for the job's customer."""
        assert job.provider is not None
        key = X25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw()
        message = _opening_message(domain, job.id, job.claimed_at, job.provider, public, now)
        signature, session = signer.sign_message(message)
        opening = TunnelOpening(
            claimed_at=job.claimed_at,
            public_key=public.hex(),
            issued_at=now,
            signature=signature.hex(),
            session=session,
        )
        return cls(opening, domain, job.provider, key)

    def channel(self, answer: TunnelAnswer) -> SealedChannel:
        """Return the channel of the customer's side. Raises BadRequestSignature if another party answered."""
        if answer.public_key is None:
            raise BadRequestSignature("the answer has no key")
        opened, signature = self.opening.hash(), bytes.fromhex(answer.signature)
        message = _answer_message(self.domain, opened, bytes.fromhex(answer.public_key))
        if len(signature) != 65 or signer_of(message, signature) != self.provider:
            raise BadRequestSignature("the answer is not signed by the provider of the job")
        to_provider, to_customer = _keys(self._key, answer.public_key, opened, message, signature)
        return SealedChannel(sending=to_provider, receiving=to_customer)


def check_opening(opening: TunnelOpening, job: Job, domain: Domain, now: int) -> Session | None:
    """Return the session whose key signed, None for the wallet. Raises BadRequestSignature unless the job's customer
    opened it just now, for this claim."""
    if abs(now - opening.issued_at) > WINDOW_S:
        raise BadRequestSignature(f"the opening's time is {abs(now - opening.issued_at)} s off the supervisor's clock")
    if opening.claimed_at != job.claimed_at or job.provider is None:
        raise BadRequestSignature("the opening is for another claim of the job")
    public = bytes.fromhex(opening.public_key)
    message = _opening_message(domain, job.id, job.claimed_at, job.provider, public, opening.issued_at)
    signature = bytes.fromhex(opening.signature)
    if opening.session:
        session = Session.parse(opening.session)
        session.require_current(now)
        session.require_wallet(domain, job.customer)
        if len(signature) != 64 or not session.has("shell"):
            raise BadRequestSignature("the session key has no right to shell")
        session.require_signed(digest(message), signature)
        return session
    if len(signature) != 65 or signer_of(message, signature) != job.customer:
        raise BadRequestSignature("the opening is not signed by the customer of the job")
    return None


def answer_opening(opening: TunnelOpening, account: LocalAccount, domain: Domain) -> tuple[TunnelAnswer, SealedChannel]:
    """Return the provider's answer to a checked opening, and the channel of the provider's side.

    Raises BadRequestSignature for a key that gives no secret.
    """
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    opened = opening.hash()
    message = _answer_message(domain, opened, public)
    signature = bytes(account.sign_message(message).signature)
    to_provider, to_customer = _keys(key, opening.public_key, opened, message, signature)
    answer = TunnelAnswer(public_key=public.hex(), signature=signature.hex())
    return answer, SealedChannel(sending=to_customer, receiving=to_provider)


def _keys(
    own: X25519PrivateKey, other: str, opened: bytes, answer: SignableMessage, signature: bytes
) -> tuple[bytes, bytes]:
    """Return the keys to the provider and to the customer."""
    try:
        secret = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
    except ValueError:
        raise BadRequestSignature("the key of the other side gives no secret") from None
    salt = keccak(opened + digest(answer) + signature)
    both = HKDF(algorithm=SHA256(), length=2 * _KEY_BYTES, salt=salt, info=INFO).derive(secret)
    return both[:_KEY_BYTES], both[_KEY_BYTES:]


def _opening_message(
    domain: Domain, job_id: int, claimed_at: int, provider: str, public: bytes, now: int
) -> SignableMessage:
    values = {"jobId": job_id, "claimedAt": claimed_at, "provider": provider, "publicKey": public, "issuedAt": now}
    return domain.message(OPENING, values)


def _answer_message(domain: Domain, opened: bytes, public: bytes) -> SignableMessage:
    return domain.message(ANSWER, {"opening": opened, "publicKey": public})
