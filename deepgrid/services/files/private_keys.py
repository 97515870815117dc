"""The key of a job's private files: made by its customer, and encrypted for itself and for clusters.

It is encrypted with ECIES for the account of each cluster. The cluster publishes its public key as a label. The hash of
a public key is the account's address, so neither the operator nor a node can replace it. The encrypted keys are a part
of the job's definition, whose hash is on chain.

The keys of streams follow by HKDF from that key, the grid, the customer and, for output, the claim. So the sealed key
and the files of a customer are of no use in another customer's job, and no output passes for the output of another
claim.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from eth_keys.datatypes import PublicKey
from eth_utils.exceptions import ValidationError

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import AccessDenied, InputError
from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.services.signing.signatures import Domain

if TYPE_CHECKING:
    from deepgrid.workflow.models import PrivateFiles

_PURPOSE = b"private files v1"
_KEY_BYTES, _NONCE_BYTES = 32, 12


def public_key_of(provider: Provider) -> bytes | None:
    """Return the public key that a cluster published; None without one, or if it is not of the cluster's account."""
    for label in provider.labels:
        try:
            content = bytes.fromhex(label.value) if label.key == PRIVATE else b""
            if content and PublicKey.from_compressed_bytes(content).to_checksum_address() == provider.address:
                return content
        except (ValueError, ValidationError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Gives the keys of streams for one customer of one grid."""

    _key: bytes
    own: bytes  # the key as the customer sealed it, which is no secret
    _place: str

    def __repr__(self) -> str:
        return "FileKeys()"

    @classmethod
    def new(cls, wallet: Wallet, domain: Domain) -> FileKeys:
        """Make a new key of this customer."""
        key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        own = nonce + AESGCM(wallet.secret_for(_PURPOSE)).encrypt(nonce, key, None)
        return cls(key, own, _place(domain, wallet.address))

    @classmethod
    def of_customer(cls, wallet: Wallet, domain: Domain, own: bytes) -> FileKeys:
        """Return the keys that the customer sealed. Raises AccessDenied for another wallet."""
        try:
            key = AESGCM(wallet.secret_for(_PURPOSE)).decrypt(own[:_NONCE_BYTES], own[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            raise AccessDenied("The private files were encrypted with another wallet, or were changed.") from None
        return cls(key, own, _place(domain, wallet.address))

    @classmethod
    def of_cluster(cls, wallet: Wallet, domain: Domain, files: PrivateFiles, customer: str) -> FileKeys:
        """Return the keys for a cluster with this wallet. Raises InputError if they are not encrypted for it."""
        for one in files.clusters:
            if one.cluster == wallet.address:
                try:
                    key = wallet.decrypt(bytes.fromhex(one.key))
                except ValueError:
                    break
                return cls(key, bytes.fromhex(files.own), _place(domain, customer))
        raise InputError("The job's private files are not encrypted for this cluster.")

    def sealed_for(self, providers: Iterable[Provider]) -> PrivateFiles:
        """Return the key, encrypted for these clusters. Clusters without a public key are left out."""
        import ecies  # here: it takes a while to load

        from deepgrid.workflow.models import PrivateFiles, SealedKey

        keys = {one.address: public for one in providers if (public := public_key_of(one))}
        sealed = (SealedKey(cluster=at, key=ecies.encrypt(keys[at], self._key).hex()) for at in sorted(keys))
        return PrivateFiles(own=self.own.hex(), clusters=tuple(sealed))

    def input_key(self) -> bytes:
        """Return the key of the input."""
        return self._derive("input")

    def output_key(self, job: Job) -> bytes:
        """Return the key of the output of the job's present or last claim."""
        return self._derive(f"output {job.id} {job.claimed_at}")

    def _derive(self, use: str) -> bytes:
        info = f"deepgrid private files v1 {self._place} {use}".encode()
        return HKDF(SHA256(), _KEY_BYTES, None, info).derive(self._key)


def _place(domain: Domain, customer: str) -> str:
    return f"{domain.chain_id} {domain.verifying_contract} {customer}"
