"""The key of one account. It never leaves this module in readable form.

Keys are files that only their owner can read: 64 hex digits, or an encrypted keystore
(password in DEEPGRID_KEY_PASSWORD). The lease of a key is next to its file (see `nonce_lease.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eth_keys.datatypes import PrivateKey
from eth_utils.exceptions import ValidationError

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import create_file

if TYPE_CHECKING:
    from deepgrid.chain.transactions.eth_accounts import Account, LocalAccount

PASSWORD_VARIABLE = "DEEPGRID_KEY_PASSWORD"
LARGEST_KEY_FILE_BYTES = 64 * 1024

_SECRETS_DOMAIN = b"deepgrid secrets of a wallet v1"

_RAW_KEY = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")


class _Secret:
    """A private key that no representation shows."""

    __slots__ = ("key",)

    def __init__(self, key: bytes) -> None:
        self.key = key


class Wallet:
    """One account, made by `load` or `create`. `key_file` is None if the key is only in memory."""

    def __init__(self, key: bytes, key_file: Path | None = None) -> None:
        self.address = str(PrivateKey(key).public_key.to_checksum_address())
        self.key_file = key_file
        self._secret = _Secret(key)

    @cached_property
    def account(self) -> LocalAccount:
        """The account that signs."""
        account: LocalAccount = _accounts().from_key(self._secret.key)
        return account

    @classmethod
    def load(cls, path: Path | str) -> Wallet:
        """Return the wallet whose key is in `path`.

        Raises ConfigurationError if the file is missing, is not a key, or others may read it.
        """
        where = Path(path).expanduser()
        key = _key(_read_private(where), where)
        try:
            return cls(key, where)
        except (ValidationError, ValueError):  # 0, beyond the curve's order, or of another length
            raise ConfigurationError(f"The key file {where} holds a number that is not a key.") from None

    @classmethod
    def create(cls, path: Path | str) -> Wallet:
        """Make a new key in `path` (0600, a new folder 0700).

        Raises ConfigurationError if the path already exists: a key is never overwritten.
        """
        return cls._kept(bytes(_accounts().create().key), Path(path).expanduser())

    @classmethod
    def keep(cls, text: str, path: Path | str) -> Wallet:
        """Put a key that exists, 64 hex digits, in `path`, as `create` does.

        Raises ConfigurationError if it is not a key, or if the path already exists.
        """
        raw = _RAW_KEY.fullmatch(text.strip())
        if raw is None:
            raise ConfigurationError("That is not a key.", next_step="A key has 64 hex digits, with or without 0x.")
        try:
            return cls._kept(bytes.fromhex(raw[1]), Path(path).expanduser())
        except (ValidationError, ValueError):  # 0, or beyond the curve's order
            raise ConfigurationError("That number is not a key.") from None

    @classmethod
    def _kept(cls, key: bytes, where: Path) -> Wallet:
        """Write the key to a new file. Raises ConfigurationError if it exists."""
        wallet = cls(key, where)
        if not where.parent.exists():
            where.parent.mkdir(parents=True, exist_ok=True)
            where.parent.chmod(0o700)
        try:
            create_file(where, f"0x{key.hex()}\n".encode())
        except FileExistsError:
            raise ConfigurationError(f"{where} exists; a key file is never overwritten.") from None
        return wallet

    @property
    def lease_file(self) -> Path | None:
        """The file that is locked while this key has transactions in flight."""
        return None if self.key_file is None else self.key_file.with_name(f"{self.key_file.name}.lease")

    def sign_typed(
        self, domain: Mapping[str, Any], types: Mapping[str, list[dict[str, str]]], message: Mapping[str, Any]
    ) -> str:
        """EIP-712 signature, 0x and 130 hex digits; `types` without `EIP712Domain`."""
        signed = self.account.sign_typed_data(dict(domain), dict(types), dict(message))
        return f"0x{bytes(signed.signature).hex()}"

    def secret_for(self, purpose: bytes) -> bytes:
        """Return a secret of 32 bytes that only this key yields, the same for the same purpose on every machine.

        It reveals nothing about the key or about the secrets for other purposes.
        """
        derived = hmac.digest(self._secret.key, _SECRETS_DOMAIN, hashlib.sha256)
        return hmac.digest(derived, purpose, hashlib.sha256)

    @property
    def public_key(self) -> bytes:
        """The compressed public key, 33 bytes. Its hash is the address."""
        return bytes(PrivateKey(self._secret.key).public_key.to_compressed_bytes())

    def decrypt(self, sealed: bytes) -> bytes:
        """Return what was encrypted for the public key by ECIES. Raises ValueError."""
        import ecies  # here: it takes a while to load

        try:
            return ecies.decrypt(self._secret.key, sealed)
        except Exception as error:  # the library raises anything from ValueError to OpenSSL errors
            raise ValueError(f"not encrypted for this key ({type(error).__name__})") from None

    def __repr__(self) -> str:
        return f"Wallet({self.address})"


def _read_private(where: Path) -> str:
    """Return the text of a key file. Checks the permissions of the opened file itself, not of its name."""
    try:
        with open(where, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigurationError(f"The key file {where} is not a regular file.")
            if mode & 0o077:
                raise ConfigurationError(
                    f"Others may read the key file {where} (mode {stat.S_IMODE(mode):04o}).",
                    next_step=f"Run `chmod 600 {where}`.",
                )
            content = file.read(LARGEST_KEY_FILE_BYTES)
    except FileNotFoundError:
        raise ConfigurationError(
            f"There is no key file {where}.", next_step="Create one with `dps key create`, or name another file."
        ) from None
    except IsADirectoryError:
        raise ConfigurationError(f"{where} is a folder, not a key file.", next_step="Name the file in it.") from None
    except OSError as error:
        raise ConfigurationError(f"The key file {where} cannot be read: {error.strerror}.") from None
    return content.decode("ascii", errors="replace").strip()


def _key(text: str, where: Path) -> bytes:
    """Return the key in a key file's text. No message here may repeat any of that text."""
    if text.startswith("{"):
        return _decrypt(text, where)
    raw = _RAW_KEY.fullmatch(text)
    if raw is None:
        raise ConfigurationError(f"The key file {where} holds neither 64 hex digits nor a keystore.")
    return bytes.fromhex(raw[1])


def _decrypt(keystore: str, where: Path) -> bytes:
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is None:
        raise ConfigurationError(
            f"The key file {where} is encrypted.", next_step=f"Put its password into {PASSWORD_VARIABLE}."
        )
    try:
        return bytes(_accounts().decrypt(keystore, password))
    except (ValueError, KeyError, TypeError, NotImplementedError):
        raise ConfigurationError(
            f"The keystore {where} does not open.", next_step=f"Check the password in {PASSWORD_VARIABLE}."
        ) from None


def _accounts() -> type[Account]:
    """eth_account's entry point. It takes 0.2 s to load, which commands save when they sign nothing."""
    from deepgrid.chain.transactions.eth_accounts import Account

    return Account
