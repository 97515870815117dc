"""Copies of definitions on this machine, by hash, encrypted by a secret of the wallet: `download` needs their secrets.

They are next to the key file, in `KEY.jobs`. Only the newest are kept. What cannot be read or written is left out: a
copy only saves its user work.
"""

from __future__ import annotations

import logging
import os
import zlib
from pathlib import Path

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.files.private_files import replace_file

logger = logging.getLogger("deepgrid.client")

FOLDER_SUFFIX = ".jobs"
MOST_FILES = 2000
_PURPOSE = b"local files of jobs v1"
_NONCE, _TAG = 16, 16


class OwnCopies:
    """The definitions of a wallet's jobs on this machine. Without a key file it keeps nothing."""

    def __init__(self, wallet: Wallet, most_files: int = MOST_FILES) -> None:
        file = wallet.key_file
        self._folder = None if file is None else file.with_name(file.name + FOLDER_SUFFIX)
        self._key = wallet.secret_for(_PURPOSE)
        self._most = most_files

    def keep(self, definition_hash: str, content: bytes) -> None:
        """Keep a definition in canonical form."""
        from Crypto.Cipher import AES  # here: it takes a while to load

        if self._folder is None:
            return
        cipher = AES.new(self._key, AES.MODE_GCM, nonce=os.urandom(_NONCE))
        cipher.update(definition_hash.encode())
        sealed, tag = cipher.encrypt_and_digest(zlib.compress(content))
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._folder / definition_hash, bytes(cipher.nonce) + tag + sealed)
            self._drop_oldest(self._folder)
        except OSError as error:
            logger.warning("the file of a job is not kept on this machine: %s", error.strerror)

    def find(self, definition_hash: str) -> bytes | None:
        """Return the definition in canonical form; None if it is not here, or not readable with this wallet."""
        from Crypto.Cipher import AES

        if self._folder is None or not definition_hash.isalnum():
            return None
        try:
            content = (self._folder / definition_hash).read_bytes()
            cipher = AES.new(self._key, AES.MODE_GCM, nonce=content[:_NONCE])
            cipher.update(definition_hash.encode())
            return zlib.decompress(cipher.decrypt_and_verify(content[_NONCE + _TAG :], content[_NONCE : _NONCE + _TAG]))
        except (OSError, ValueError, zlib.error):
            return None

    def _drop_oldest(self, folder: Path) -> None:
        files = list(folder.iterdir())
        if len(files) > self._most + self._most // 10:
            by_age = sorted(files, key=lambda file: file.stat().st_mtime)
            for file in by_age[: len(files) - self._most]:
                file.unlink(missing_ok=True)
