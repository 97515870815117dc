"""The archive of a backup: a tar file with `manifest.json`, the dump of the database and, unless left out, `secret`.

The checksums find damage. They do not prove who made the archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepgrid.errors import ConfigurationError

MANIFEST, SECRET = "manifest.json", "secret"
MOST_BYTES = {MANIFEST: 65536, SECRET: 1024}
PIECE = 1 << 20

Kind = Literal["sqlite", "postgresql"]
DUMPS: dict[Kind, str] = {"sqlite": "database.sqlite", "postgresql": "database.dump"}


class Manifest(BaseModel):
    """What a backup holds. `schema_step` is the last migration, `made_at` unix seconds.

    `secret_sha256` is of the key, also if the archive does not hold it. `members` maps names to SHA-256.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    deepgrid: str
    schema_step: str
    kind: Kind
    chain_id: int
    meta_scheduler: str
    credit: str
    provider_manager: str
    made_at: int = Field(gt=0)
    secret_sha256: str
    members: dict[str, str]

    @property
    def dump(self) -> str:
        """Name of the member with the database."""
        return DUMPS[self.kind]


def sha256_of(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def pack(archive: Path, manifest: Manifest, files: Iterable[Path]) -> None:
    """Write the archive, mode 0600, under a temporary name, and rename it. Raises OSError."""
    descriptor, draft = tempfile.mkstemp(dir=archive.parent, prefix=f".{archive.name}.")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as out:
            with tarfile.open(fileobj=out, mode="w") as tar:
                _add(tar, MANIFEST, io.BytesIO(manifest.model_dump_json(indent=2).encode() + b"\n"))
                for file in files:
                    with open(file, "rb") as content:
                        _add(tar, file.name, content)
            out.flush()
            os.fsync(out.fileno())
        os.rename(draft, archive)
        _sync_folder(archive.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def unpack(archive: Path, folder: Path) -> Manifest:
    """Unpack the archive into the folder, and check it. Raises ConfigurationError.

    Only names of members are used that a backup has. So nothing is written elsewhere.
    """
    found: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                if not member.isreg() or member.name in found or member.name not in (MANIFEST, SECRET, *DUMPS.values()):
                    raise _damaged(archive, "has a member that no backup has")
                if member.size > MOST_BYTES.get(member.name, member.size):
                    raise _damaged(archive, f"has a {member.name} that is too large")
                content = tar.extractfile(member)
                assert content is not None  # it is a regular file
                found[member.name] = _copy(content, folder / member.name)
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (tarfile.TarError, EOFError, ValidationError):
        raise _damaged(archive, "is not a backup, or a part of it is missing") from None
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be unpacked: {error.strerror}.") from None
    del found[MANIFEST]
    if found != manifest.members or manifest.dump not in found:
        raise _damaged(archive, "is damaged: its checksums are not those of its manifest")
    return manifest


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = content.seek(0, os.SEEK_END), 0o600
    content.seek(0)
    tar.addfile(entry, content)


def _copy(content: IO[bytes], to: Path) -> str:
    """Write a new file, mode 0600, and return its SHA-256."""
    digest = hashlib.sha256()
    with open(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
        while piece := content.read(PIECE):
            digest.update(piece)
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _damaged(archive: Path, fault: str) -> ConfigurationError:
    return ConfigurationError(f"{archive} {fault}.", next_step="Nothing was changed. Use another backup.")
