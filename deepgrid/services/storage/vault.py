"""Encryption at rest: customers' data in the database is unreadable without the key file."""

from __future__ import annotations

import base64
import os
import stat
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import create_file


class Vault:
    """Encrypts and decrypts bytes with the key of this service."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)
        self._key = base64.urlsafe_b64decode(key)

    @classmethod
    def open(cls, path: Path) -> Vault:
        """Open the vault of a key file. A missing file is created (mode 0600).

        Raises ConfigurationError when others may read the file, or when it does not hold a key.
        """
        if not path.exists():
            write_key(path, Fernet.generate_key() + b"\n")
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                key = file.read(1024).strip()
        except OSError as error:
            raise ConfigurationError(f"The secret file {path} cannot be read: {error.strerror}.") from None
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise ConfigurationError(
                f"Others may read the secret file {path} (mode {stat.S_IMODE(mode):04o}).",
                next_step=f"Run `chmod 600 {path}`.",
            )
        try:
            return cls(key)
        except ValueError:
            raise ConfigurationError(f"The secret file {path} does not hold a key.") from None

    def derive(self, use: str) -> bytes:
        """Return a key of 32 bytes for another use. It says nothing about this one."""
        return HKDF(hashes.SHA256(), 32, None, f"deepgrid {use}".encode()).derive(self._key)

    def seal(self, content: bytes) -> bytes:
        return self._fernet.encrypt(content)

    def unseal(self, sealed: bytes) -> bytes:
        """Decrypt. Raises ConfigurationError when the data was changed, or sealed with another key."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            raise ConfigurationError("The database was written with another secret file.") from None


def write_key(path: Path, content: bytes) -> None:
    """Write the file of a key, unless it exists. If several processes do so, one wins and all use its key."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        create_file(path, content)
