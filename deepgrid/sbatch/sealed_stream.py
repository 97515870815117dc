"""Private files as one byte stream, encrypted in chunks. Nodes run this file: Python 3.7, and its libcrypto.

The stream begins with a header: a magic number, the stream's key as its customer encrypted it, and a salt. The header's
hash is part of the key. Chunks of 64 KiB follow, encrypted with AES-256-GCM as in the STREAM construction of age. The
nonce is the number of the chunk and a flag for the last one. So no chunk can be dropped, moved, repeated or changed.
The plaintext is the length of a list of files (8 bytes), the list in the format of a manifest, and the contents of the
files one after another.
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

MARK = b"dgfiles1"
OWN_BYTES, SALT_BYTES, CHUNK, TAG = 60, 32, 65536, 16
HEADER_BYTES = len(MARK) + OWN_BYTES + SALT_BYTES
SEALED_CHUNK = CHUNK + TAG
LENGTH_BYTES = 8
NAME = "sealed"  # name of the only file that the grid sees
LONGEST_LIST = 16 * 1024 * 1024


def new_header(own: bytes) -> bytes:
    """Return a header with the key as its customer encrypted it."""
    return MARK + own + os.urandom(SALT_BYTES)


def stream_key(key: bytes, header: bytes) -> bytes:
    """Return the key of the stream with this header: HKDF-SHA256."""
    pseudorandom = hmac.new(header[-SALT_BYTES:], key, hashlib.sha256).digest()
    return hmac.new(pseudorandom, header[:-SALT_BYTES] + b"\x01", hashlib.sha256).digest()


def nonce(number: int, last: bool) -> bytes:
    """Return the nonce of a chunk."""
    return number.to_bytes(11, "big") + (b"\x01" if last else b"\x00")


class Broken(Exception):
    """The bytes were changed, or encrypted with another key."""


class Gcm:
    """AES-256-GCM of OpenSSL's libcrypto."""

    def __init__(self, key: bytes) -> None:
        self._lib = lib = _libcrypto()
        self._context = lib.EVP_CIPHER_CTX_new()
        self._key = key

    def encrypt(self, nonce: bytes, data: bytes) -> bytes:
        """Return the encrypted data, followed by its tag."""
        lib, out, done = self._lib, ctypes.create_string_buffer(len(data) + TAG), ctypes.c_int()
        context, at_tag = self._context, ctypes.byref(out, len(data))
        _require(lib.EVP_EncryptInit_ex(context, lib.EVP_aes_256_gcm(), None, self._key, nonce))
        _require(lib.EVP_EncryptUpdate(context, out, ctypes.byref(done), data, len(data)))
        _require(lib.EVP_EncryptFinal_ex(context, at_tag, ctypes.byref(done)))
        _require(lib.EVP_CIPHER_CTX_ctrl(context, 0x10, TAG, at_tag))
        return out.raw

    def decrypt(self, nonce: bytes, data: bytes) -> bytes:
        """Return the data. Raises Broken."""
        size = len(data) - TAG
        if size < 0:
            raise Broken
        lib, out, done = self._lib, ctypes.create_string_buffer(size + TAG), ctypes.c_int()
        context = self._context
        _require(lib.EVP_DecryptInit_ex(context, lib.EVP_aes_256_gcm(), None, self._key, nonce))
        _require(lib.EVP_DecryptUpdate(context, out, ctypes.byref(done), data, size))
        _require(lib.EVP_CIPHER_CTX_ctrl(context, 0x11, TAG, data[size:]))
        _require(lib.EVP_DecryptFinal_ex(context, ctypes.byref(out, size), ctypes.byref(done)))
        return out.raw[:size]


def _libcrypto() -> ctypes.CDLL:
    import _hashlib  # it is linked with the libcrypto of this Python

    lib = ctypes.CDLL(_hashlib.__file__)
    lib.EVP_CIPHER_CTX_new.restype = lib.EVP_aes_256_gcm.restype = ctypes.c_void_p
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name in ("Encrypt", "Decrypt"):
        getattr(lib, f"EVP_{name}Init_ex").argtypes = [pointer, pointer, pointer, ctypes.c_char_p, ctypes.c_char_p]
        getattr(lib, f"EVP_{name}Update").argtypes = [pointer, pointer, pointer, ctypes.c_char_p, number]
        getattr(lib, f"EVP_{name}Final_ex").argtypes = [pointer, pointer, pointer]
    lib.EVP_CIPHER_CTX_ctrl.argtypes = [pointer, number, number, pointer]
    return lib


def _require(answer: int) -> None:
    if answer <= 0:
        raise Broken


def seal(cipher: Gcm, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Encrypt everything that `read` returns."""
    number, chunk = 0, read(CHUNK)
    while True:
        following = read(CHUNK) if len(chunk) == CHUNK else b""
        write(cipher.encrypt(nonce(number, not following), chunk))
        if not following:
            return
        number, chunk = number + 1, following


def unsealed(cipher: Gcm, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the decrypted bytes. Raises Broken, for some faults only at the end."""
    number, sealed = 0, read(SEALED_CHUNK)
    while True:
        following = read(SEALED_CHUNK) if len(sealed) == SEALED_CHUNK else b""
        yield cipher.decrypt(nonce(number, not following), sealed)
        if not following:
            return
        number, sealed = number + 1, following


class _Row:
    """Reads consecutive pieces as one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def some(self, most: int) -> bytes:
        """Return at most this many bytes; none at the end."""
        if not self._left:
            self._left = next(self._pieces, b"")
        found, self._left = self._left[:most], self._left[most:]
        return found

    def exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = self.some(size - len(found))
            if not piece:
                raise Broken
            found += piece
        return bytes(found)


def unpack(row: _Row, folder: str) -> None:
    """Write the files of a stream into a folder. Raises Broken."""
    size = int.from_bytes(row.exactly(LENGTH_BYTES), "big")
    if size > LONGEST_LIST:
        raise Broken
    for entry in row.exactly(size).split(b"\0")[:-1]:
        facts, path = entry.split(b"  ", 1)
        content_size, mode, _ = facts.split(b" ")
        if any(part in (b"", b".", b"..") for part in path.split(b"/")):
            raise Broken
        place = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        rights = 0o700 if int(mode, 8) & 0o100 else 0o600
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as file:
            left = int(content_size)
            while left:
                piece = row.some(left)
                if not piece:
                    raise Broken
                file.write(piece)
                left -= len(piece)
    if row.some(1):
        raise Broken


def pack(text: bytes, contents: BinaryIO) -> Callable[[int], bytes]:
    """Return a function that reads the plaintext: the list of files, then `contents`."""
    left = sum(int(entry.split(b" ", 1)[0]) for entry in text.split(b"\0")[:-1])
    head = len(text).to_bytes(LENGTH_BYTES, "big") + text

    def read(most: int) -> bytes:
        nonlocal left, head
        found, head = head[:most], head[most:]
        if len(found) < most:
            more = contents.read(most - len(found))
            left -= len(more)
            found += more
            if (len(found) < most and left) or left < 0:
                raise Broken  # a file became longer or shorter
        return found

    return read


def main(how: str, where: str) -> None:
    """Run "seal LIST" or "unseal FOLDER". `seal` encrypts the files of a list, whose contents come from standard input.

    File descriptor 3 gives the key, and the key that the customer encrypted, in hexadecimal digits.
    """
    with os.fdopen(3) as secrets:
        key, own = (bytes.fromhex(text) for text in secrets.read().split(" "))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    if how == "seal":
        with open(where, "rb") as file:
            read = pack(file.read(), source)
        header = new_header(own)
        target.write(header)
        seal(Gcm(stream_key(key, header)), read, target.write)
        target.flush()
        return
    header = source.read(HEADER_BYTES)
    if len(header) != HEADER_BYTES or not header.startswith(MARK):
        raise Broken
    unpack(_Row(unsealed(Gcm(stream_key(key, header)), source.read)), where)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # its text may have names of files, and the log is not private
        sys.exit(f"deepgrid: private files: {type(error).__name__}")
