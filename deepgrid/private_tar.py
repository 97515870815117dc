"""Archives of backups: tar files that only their owner can read, with `manifest.json` as first member.

The checksums find damage. They do not prove who made the archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from deepgrid.errors import ConfigurationError
from deepgrid.private_files import copy_private, draft_of, sync

MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 1 << 20
BAD_CHECKSUMS = "is damaged: its checksums are not those of its manifest"


class Contents(BaseModel):
    """The base of manifests. `members` maps names of members to their SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    members: dict[str, str]


M = TypeVar("M", bound=Contents)


def sha256_of(file: Path) -> str:
    """The hex digits of the SHA-256 digest, computed over the content."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def require_new(archive: Path) -> None:
    """Raise ConfigurationError if the archive exists or its folder does not, before the work of a backup is done."""
    folder = archive.absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder {folder}.", next_step="Make it, for this command's account only.")
    if archive.exists():
        raise ConfigurationError(f"{archive} exists.", next_step="Choose another name for the backup.")


def pack(archive: Path, manifest: Contents, files: Iterable[Path]) -> None:
    """Write the archive, mode 0600, under a temporary name, and rename it. Raises OSError."""
    with draft_of(archive) as draft:
        with tarfile.open(fileobj=draft, mode="w") as tar:
            _add(tar, MANIFEST, io.BytesIO(manifest.model_dump_json(indent=2).encode() + b"\n"))
            for file in files:
                with open(file, "rb") as content:
                    _add(tar, file.name, content)
        sync(draft)
        os.rename(draft.name, archive)
        _sync_folder(archive.parent)


def unpack(archive: Path, folder: Path, kind: type[M], most_bytes: Callable[[str], int | None]) -> M:
    """Unpack the archive into the folder, and check it. Raises ConfigurationError.

    `most_bytes` gives the largest size of a member, and None for a name that such a backup does not have. It accepts
    plain names only, so nothing is written elsewhere.
    """
    found: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                most = MOST_MANIFEST_BYTES if member.name == MANIFEST else most_bytes(member.name)
                if not member.isreg() or member.name in found or most is None or "/" in member.name:
                    raise damaged(archive, "has a member that no backup has")
                if member.size > most:
                    raise damaged(archive, f"has a {member.name} that is too large")
                content = tar.extractfile(member)
                assert content is not None  # it is a regular file
                found[member.name] = copy_private(content, folder / member.name)
        manifest = kind.model_validate_json((folder / MANIFEST).read_bytes())
    except (tarfile.TarError, EOFError, ValidationError):
        raise damaged(archive, "is not a backup of this kind, or a part of it is missing") from None
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be unpacked: {error.strerror}.") from None
    del found[MANIFEST]
    if found != manifest.members:
        raise damaged(archive, BAD_CHECKSUMS)
    return manifest


def damaged(archive: Path, fault: str) -> ConfigurationError:
    """The error of an archive with this fault."""
    return ConfigurationError(f"{archive} {fault}.", next_step="Nothing was changed. Use another backup.")


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = content.seek(0, os.SEEK_END), 0o600
    content.seek(0)
    tar.addfile(entry, content)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
