"""Private files between this machine and the grid: encrypted before they leave, decrypted when they arrive.

The grid sees one file. Its name reveals nothing. Its size is about the total size of the files. Names, sizes and
contents of the files are inside, as `deepgrid.sbatch.sealed_stream` defines.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.files.exchange import FileExchange
from deepgrid.client.files.local_files import LocalFiles
from deepgrid.errors import AccessDenied, InputError, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.sbatch.file_addresses import PART_BYTES, part_count, part_size
from deepgrid.sbatch.sealed_stream import (
    CHUNK,
    HEADER_BYTES,
    LENGTH_BYTES,
    MARK,
    NAME,
    OWN_BYTES,
    SEALED_CHUNK,
    TAG,
    new_header,
    nonce,
    stream_key,
)
from deepgrid.services.files.manifest import MAX_MANIFEST_BYTES, FileEntry, Manifest
from deepgrid.services.files.private_keys import FileKeys
from deepgrid.services.signing.signatures import Domain

_NEXT_STEP = "Tell the grid's operator: its store may be breached."


class SealedFiles:
    """Files of this machine as one encrypted file. `manifest` is what the grid sees of them.

    Each chunk is encrypted for sending exactly as it was for the checksum, so a nonce is never used for two contents.
    """

    def __init__(self, files: LocalFiles, keys: FileKeys) -> None:
        text = files.manifest.text
        self._files = files
        self._head = len(text).to_bytes(LENGTH_BYTES, "big") + text
        self._size = len(self._head) + files.manifest.size
        self._chunks = -(-self._size // CHUNK)
        self._header = new_header(keys.own)
        self._cipher = AESGCM(stream_key(keys.input_key(), self._header))
        size = HEADER_BYTES + self._size + self._chunks * TAG
        self._sums, checksum = list[bytes](), hashlib.sha256()
        buffer = memoryview(bytearray(min(PART_BYTES, size)))
        for index in range(part_count(size)):
            part = buffer[: part_size(size, index)]
            self._seal_into(part, index * PART_BYTES)
            self._sums.append(hashlib.sha256(part).digest())
            checksum.update(part)
        self.manifest = Manifest.of([FileEntry(NAME, size, 0o600, checksum.hexdigest())])

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill the target with the part that begins at `start`. Raises InputError if a file was changed."""
        is_same = False
        try:
            self._seal_into(target, start)
            is_same = hashlib.sha256(target).digest() == self._sums[start // PART_BYTES]
        finally:
            if not is_same:
                target[:] = bytes(len(target))
        if not is_same:
            raise InputError("A file changed while it was sent.", next_step="Send it again.")

    def _seal_into(self, target: memoryview, start: int) -> None:
        done = 0
        while done < len(target):
            if (at := start + done) < HEADER_BYTES:
                found = self._header[at:]
            else:
                number, skipped = divmod(at - HEADER_BYTES, SEALED_CHUNK)
                found = self._encrypted_chunk(number)[skipped:]
            found = found[: len(target) - done]
            target[done : done + len(found)] = found
            done += len(found)

    def _encrypted_chunk(self, number: int) -> bytes:
        start = number * CHUNK
        chunk = bytearray(min(CHUNK, self._size - start))
        head = self._head[start : start + len(chunk)]
        chunk[: len(head)] = head
        if len(head) < len(chunk):
            self._files.read_into(memoryview(chunk)[len(head) :], start + len(head) - len(self._head))
        return self._cipher.encrypt(nonce(number, number == self._chunks - 1), bytes(chunk), None)


class SealedExchange:
    """Reads the private output of a job as if the grid had its files in clear text."""

    def __init__(self, exchange: FileExchange, wallet: Wallet, domain: Domain, job: Job) -> None:
        self._exchange = exchange
        self._wallet, self._domain, self._job = wallet, domain, job
        self._size = self._chunks = self._first = 0
        self._cipher: AESGCM | None = None

    async def read(self, what: str, most_bytes: int) -> bytes:
        """Return the list of files, which must be read first. Raises AccessDenied, even for plain files."""
        if what != "manifest":
            raise ValueError(what)
        entries = Manifest.parse(await self._exchange.read(what, most_bytes)).entries
        if [one.path for one in entries] != [NAME]:
            raise self._changed_error()
        await self._open(entries[0].size)
        size = int.from_bytes(await self._plain(0, LENGTH_BYTES), "big")
        self._first = LENGTH_BYTES + size
        if size > MAX_MANIFEST_BYTES or self._first > self._size:
            raise self._changed_error()
        text = await self._plain(LENGTH_BYTES, self._first)
        if self._first + Manifest.parse(text).size != self._size:
            raise self._changed_error()
        return text

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the contents of files from `start` up to `end`. Raises AccessDenied if they were changed."""
        assert what == "data" and self._first
        async with aclosing(self._decrypt(self._first + start, self._first + end)) as pieces:
            async for piece in pieces:
                yield piece

    async def _open(self, size: int) -> None:
        """Read the header of a sealed file of this size."""
        self._chunks = -(-(size - HEADER_BYTES) // SEALED_CHUNK)
        self._size = size - HEADER_BYTES - self._chunks * TAG
        if self._size < LENGTH_BYTES:
            raise self._changed_error()
        async with aclosing(self._exchange.pieces("data", 0, HEADER_BYTES)) as pieces:
            header = b"".join([piece async for piece in pieces])
        if len(header) != HEADER_BYTES or not header.startswith(MARK):
            raise self._changed_error()
        own = header[len(MARK) : len(MARK) + OWN_BYTES]
        keys = FileKeys.of_customer(self._wallet, self._domain, own)
        self._cipher = AESGCM(stream_key(keys.output_key(self._job), header))

    async def _plain(self, start: int, end: int) -> bytes:
        async with aclosing(self._decrypt(start, end)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def _decrypt(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the row from `start` up to `end`, chunk by chunk."""
        if start >= end:
            return
        number, behind = start // CHUNK, -(-end // CHUNK)
        until = HEADER_BYTES + min(behind * SEALED_CHUNK, self._size + self._chunks * TAG)
        sealed, at = bytearray(), HEADER_BYTES + number * SEALED_CHUNK
        async with aclosing(self._exchange.pieces("data", at, until)) as pieces:
            async for data in pieces:
                sealed += data
                while number < behind and len(sealed) >= (length := min(SEALED_CHUNK, until - at)):
                    chunk = self._chunk(number, bytes(sealed[:length]))
                    yield chunk[max(0, start - number * CHUNK) : end - number * CHUNK]
                    del sealed[:length]
                    number, at = number + 1, at + length
        if number < behind:
            raise ServiceError("The connection to the grid's services broke.")

    def _chunk(self, number: int, sealed: bytes) -> bytes:
        assert self._cipher is not None
        try:
            return self._cipher.decrypt(nonce(number, number == self._chunks - 1), sealed, None)
        except InvalidTag:
            raise self._changed_error() from None

    def _changed_error(self) -> AccessDenied:
        words = f"The files of job {self._job.id} are private. What the grid gave is not what the job encrypted."
        return AccessDenied(words, next_step=_NEXT_STEP)
