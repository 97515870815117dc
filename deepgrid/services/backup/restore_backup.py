"""Restores a backup into an empty database, after all checks."""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError
from deepgrid.services import schema
from deepgrid.services.backup.backup_archive import SECRET, Manifest, unpack
from deepgrid.services.backup.dumps import Dumper, dumper_of
from deepgrid.services.storage.vault import Vault, write_key


async def restore(archive: Path, database_url: str, secret_file: Path, book: AddressBook) -> Manifest:
    """Restore the archive, and bring its tables to this release. Raises ConfigurationError.

    Nothing is changed unless the archive is whole, of this grid, and the database is empty.
    """
    dumper = dumper_of(database_url)
    dumper.require_absent()
    try:
        if dumper.staging is not None:
            dumper.staging.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=dumper.staging, prefix=".restore.") as name:  # mode 0700
            folder = Path(name)
            manifest = unpack(archive, folder)
            _require_fit(manifest, dumper, book)
            key = _key(manifest, folder / SECRET, secret_file)
            write_key(secret_file, key + b"\n")  # first: without it, the services would make a new one
            await dumper.load(folder / manifest.dump)
            return manifest
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be restored: {error.strerror}.") from None


def _require_fit(manifest: Manifest, dumper: Dumper, book: AddressBook) -> None:
    """Raise ConfigurationError if the backup is of another grid, database or release, or of the future."""
    if manifest.kind != dumper.kind:
        raise ConfigurationError(f"The backup is of {manifest.kind}, the database is {dumper.kind}.")
    if manifest.chain_id != book.chain_id:
        raise ConfigurationError(f"The backup is of chain {manifest.chain_id}, the address book of {book.chain_id}.")
    for name in ("meta_scheduler", "credit", "provider_manager"):
        if getattr(manifest, name) != getattr(book, name):
            raise ConfigurationError(f"The backup is of a grid with another {name} than the address book's.")
    schema.require_known(manifest.schema_step)
    if manifest.made_at > time.time():
        raise ConfigurationError(
            "The backup was made later than now by this machine's clock.",
            next_step="Correct the clock: it decides which requests are refused as old.",
        )


def _key(manifest: Manifest, backed_up: Path, secret_file: Path) -> bytes:
    """The key of the backup: the archive's, else that of the secret file. Raises ConfigurationError."""
    if secret_file.exists():
        Vault.open(secret_file)  # refuses a file that others may read
    elif not backed_up.exists():
        raise ConfigurationError(
            "The backup does not hold the secret file.", next_step=f"Put it at {secret_file} first, with mode 0600."
        )
    keys = [file.read_bytes().strip() for file in (secret_file, backed_up) if file.exists()]
    if any(hashlib.sha256(key).hexdigest() != manifest.secret_sha256 for key in keys):
        raise ConfigurationError(
            f"The secret file {secret_file} is not that of the backup.", next_step="Move it away, or use its backup."
        )
    return keys[0]
