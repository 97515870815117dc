"""Makes a backup while the services run."""

from __future__ import annotations

import hashlib
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import select

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError
from deepgrid.private_tar import pack, require_new, sha256_of
from deepgrid.services.backup.backup_archive import DUMPS, SECRET, Manifest
from deepgrid.services.backup.dumps import dumper_of
from deepgrid.services.storage.database import Database, Definition, LogChunk
from deepgrid.services.storage.vault import Vault


async def back_up(
    archive: Path, database_url: str, secret_file: Path, book: AddressBook, *, without_secret: bool = False
) -> Manifest:
    """Write database and secret file into a new archive. Raises ConfigurationError.

    The secret file must be that of the database, also if it is left out.
    """
    require_new(archive)
    if not secret_file.exists():
        raise ConfigurationError(f"There is no secret file at {secret_file}.")
    dumper = dumper_of(database_url)
    dumper.require_present()
    step = await _checked(database_url, Vault.open(secret_file))
    try:
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".backup.") as folder:  # mode 0700
            dump, secret = Path(folder, DUMPS[dumper.kind]), Path(folder, SECRET)
            await dumper.dump(dump)
            files = [dump]
            key = secret_file.read_bytes().strip()
            if not without_secret:
                secret.write_bytes(key + b"\n")
                files.append(secret)
            manifest = Manifest(
                deepgrid=version("deepgrid"), schema_step=step, kind=dumper.kind,
                chain_id=book.chain_id, meta_scheduler=book.meta_scheduler, credit=book.credit,
                provider_manager=book.provider_manager, made_at=int(time.time()),
                secret_sha256=hashlib.sha256(key).hexdigest(), members={file.name: sha256_of(file) for file in files},
            )  # fmt: skip
            pack(archive, manifest, files)
            return manifest
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be written: {error.strerror}.") from None


async def _checked(database_url: str, vault: Vault) -> str:
    """The last step of the schema. Raises ConfigurationError if the vault does not open the database."""
    database = Database(database_url)
    try:
        step = await database.last_step()
        async with database.read() as session:
            sealed = await session.scalar(select(Definition.sealed).where(Definition.sealed.is_not(None)).limit(1))
            sealed = sealed or await session.scalar(select(LogChunk.sealed).limit(1))
    finally:
        await database.close()
    if sealed is not None:
        vault.unseal(sealed)
    return step
