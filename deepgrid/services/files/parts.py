"""The contents of bundles in a store of objects: a folder of this machine, or a bucket of any S3 service.

A bundle's bytes are cut into parts of 4 MiB. Each is encrypted with the bundle's own key (AES-256-GCM). Its place
(bundle, manifest, number) is authenticated with it: the store cannot exchange, reorder or replay parts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, ObjectStore, from_url

from deepgrid.errors import ConfigurationError, ServiceError
from deepgrid.sbatch.file_addresses import PART_BYTES, part_count, part_size

NONCE_BYTES, TAG_BYTES = 12, 16
OVERHEAD = NONCE_BYTES + TAG_BYTES
MANIFEST = "manifest"


def open_store(where: str) -> ObjectStore:
    """Open a folder, or a bucket by its URL (s3://BUCKET/PREFIX). Raises ConfigurationError.

    Credentials of a bucket come from the environment, in the variables of AWS's own tools.
    """
    try:
        if "://" in where:
            return from_url(where)
        folder = Path(where)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return LocalStore(folder, automatic_cleanup=True)
    except (BaseError, OSError, ValueError) as error:
        raise ConfigurationError(f"The store of files cannot be used ({type(error).__name__}).") from None


class Parts:
    """The encrypted parts of all bundles."""

    def __init__(self, store: ObjectStore, key: bytes) -> None:
        self._store = store
        self._key = key

    def of(self, bundle: str, digest: str) -> BundleParts:
        """Return the parts of a bundle with the manifest of this digest."""
        key = HKDF(hashes.SHA256(), 32, bytes.fromhex(bundle), b"deepgrid files v1").derive(self._key)
        return BundleParts(self._store, AESGCM(key), f"{bundle[:2]}/{bundle}/{digest[:32]}")

    async def forget(self, bundle: str, keep: str = "") -> None:
        """Delete all parts of a bundle, except those with the manifest of the digest `keep`. Raises ServiceError."""
        kept = f"{bundle[:2]}/{bundle}/{keep[:32]}/"
        with answering():
            async for page in obstore.list(self._store, prefix=f"{bundle[:2]}/{bundle}"):
                gone = [one["path"] for one in page if not keep or not one["path"].startswith(kept)]
                if gone:
                    await obstore.delete_async(self._store, gone)


class BundleParts:
    """The parts of one bundle."""

    def __init__(self, store: ObjectStore, cipher: AESGCM, folder: str) -> None:
        self._store = store
        self._cipher = cipher
        self._folder = folder

    async def put(self, name: str | int, content: bytes | memoryview, buffer: bytearray | None = None) -> None:
        """Encrypt a part, into the buffer if there is one, and store it. Raises ServiceError."""
        path = self._path(name)
        sealed = await asyncio.to_thread(self._seal, path, content, buffer or bytearray(len(content) + OVERHEAD))
        with answering():
            await obstore.put_async(self._store, path, sealed)

    async def get(self, name: str | int) -> bytes:
        """Return a part. Raises ServiceError, including when the part was changed or is missing."""
        path = self._path(name)
        with answering():
            sealed = memoryview(await (await obstore.get_async(self._store, path)).bytes_async())
        try:
            return await asyncio.to_thread(
                self._cipher.decrypt, sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], path.encode()
            )
        except InvalidTag:
            raise ServiceError("A stored file was changed, or has another key.", transient=False) from None

    async def sizes(self) -> dict[str, int]:
        """Return the size of each part that is stored, by its name. Raises ServiceError."""
        found: dict[str, int] = {}
        with answering():
            async for page in obstore.list(self._store, prefix=self._folder):
                found |= {one["path"].rpartition("/")[2]: one["size"] - OVERHEAD for one in page}
        return found

    async def missing(self, size: int) -> list[int]:
        """Return the numbers of the parts of a bundle of this size that are not stored whole. Raises ServiceError."""
        stored = await self.sizes()
        return [index for index in range(part_count(size)) if stored.get(_name(index)) != part_size(size, index)]

    def reader(self) -> PartReader:
        return PartReader(self)

    def _seal(self, path: str, content: bytes | memoryview, buffer: bytearray) -> memoryview:
        nonce, sealed = os.urandom(NONCE_BYTES), memoryview(buffer)[: len(content) + OVERHEAD]
        sealed[:NONCE_BYTES] = nonce
        self._cipher.encrypt_into(nonce, content, path.encode(), sealed[NONCE_BYTES:])
        return sealed

    def _path(self, name: str | int) -> str:
        return f"{self._folder}/{_name(name)}"


class PartReader:
    """Reads a bundle's bytes in order, and keeps the last part: many small files share one."""

    def __init__(self, parts: BundleParts) -> None:
        self._parts = parts
        self._index, self._content = -1, b""

    async def read(self, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `end`. Raises ServiceError."""
        while start < end:
            index, skipped = divmod(start, PART_BYTES)
            if index != self._index:
                self._content = b""
                self._index, self._content = index, await self._parts.get(index)
            piece = self._content[skipped : skipped + end - start]
            if not piece:
                raise ServiceError("A stored file is shorter than it was.", transient=False)
            start += len(piece)
            yield piece


def _name(name: str | int) -> str:
    return name if isinstance(name, str) else f"{name:08d}"


@contextmanager
def answering() -> Iterator[None]:
    """Raise ServiceError when the store fails."""
    try:
        yield
    except (FileNotFoundError, NotFoundError):
        raise ServiceError("A stored file is missing.", transient=False) from None
    except (BaseError, OSError) as error:
        raise ServiceError(f"The store of files does not answer ({type(error).__name__}).") from None
