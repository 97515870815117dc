"""Backups of a role's files: keys, address book, settings and state. A restore puts each file back to its path.

Archives are tar files that only their owner can read, with `manifest.json` as the first member. The checksums detect
damage. They do not prove who made the archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import copy_private, draft_of, sync

MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 1 << 20
BAD_CHECKSUMS = "is damaged: its checksums do not match its manifest"
Role = Literal["provider", "operator"]
DATABASE = ".sqlite"
PRIVATE = 0o600
LOCKED_WITHIN_S = 60.0  # how long to wait for the writer of a database
NOT_KEPT = (".lease", ".sqlite-wal", ".sqlite-shm")  # locks, and files whose content is in the copy of a database
HIDDEN = "."  # drafts, which vanish at any moment, and caches of other programs


class Contents(BaseModel):
    """The base of manifests. `members` maps names of members to their SHA-256, `made_at` is in unix seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    deepgrid: str
    made_at: int = Field(gt=0)
    members: dict[str, str]


M = TypeVar("M", bound=Contents)


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of the file's content in hex."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def contents_of(files: Iterable[Path]) -> dict[str, Any]:
    """Return the fields of `Contents` for a new backup of these files."""
    members = {file.name: sha256_of(file) for file in files}
    return {"deepgrid": version("deepgrid"), "made_at": int(time.time()), "members": members}


def require_new(archive: Path) -> None:
    """Raise ConfigurationError if the archive exists or its folder does not. Call it before the work of a backup."""
    folder = archive.absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder {folder}.", next_step="Make it, for this command's account only.")
    if archive.exists():
        raise ConfigurationError(f"{archive} exists.", next_step="Choose another name for the backup.")


def pack(archive: Path, manifest: Contents, files: Iterable[Path]) -> None:
    """Write the archive, mode 0600, under a temporary name, and rename it. `files` keep their modes. Raises OSError."""
    with draft_of(archive) as draft:
        text = manifest.model_dump_json(indent=2).encode() + b"\n"
        head = tarfile.TarInfo(MANIFEST)
        head.size, head.mode = len(text), PRIVATE
        with tarfile.open(fileobj=draft, mode="w") as tar:
            tar.addfile(head, io.BytesIO(text))
            for file in files:
                tar.add(file, file.name)
        sync(draft)
        os.rename(draft.name, archive)
        _sync_folder(archive.parent)


def unpack(archive: Path, folder: Path, kind: type[M], most_bytes: Callable[[str], int | None]) -> M:
    """Unpack the archive into the folder, and check it. Raises ConfigurationError.

    `most_bytes` returns the maximum size of a member, or None for a name that such a backup does not have. Only plain
    names are accepted, so nothing is written elsewhere.
    """
    found: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                most = MOST_MANIFEST_BYTES if member.name == MANIFEST else most_bytes(member.name)
                if not member.isreg() or member.name in found or most is None or "/" in member.name:
                    raise damaged_archive(archive, "has a member that no backup has")
                if member.size > most:
                    raise damaged_archive(archive, f"has a {member.name} that is too large")
                content = tar.extractfile(member)
                assert content is not None  # it is a regular file
                found[member.name] = copy_private(content, folder / member.name)
        manifest = kind.model_validate_json((folder / MANIFEST).read_bytes())
    except (tarfile.TarError, EOFError, ValidationError):
        raise damaged_archive(archive, "is not a backup of this kind, or a part of it is missing") from None
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be unpacked: {error.strerror}.") from None
    del found[MANIFEST]
    if found != manifest.members:
        raise damaged_archive(archive, BAD_CHECKSUMS)
    return manifest


def damaged_archive(archive: Path, fault: str) -> ConfigurationError:
    """Return the error of an archive with this fault."""
    return ConfigurationError(f"{archive} {fault}.", next_step="Nothing was changed. Use another backup.")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FilesManifest(Contents):
    """The role and the files of a backup. `paths` maps names of members to paths."""

    role: Role
    name: str
    paths: dict[str, str]


def state_files(folder: Path, but: Iterable[str] = ()) -> list[Path]:
    """Return the files of a state folder that a backup keeps: all except locks, hidden files and files named in `but`.

    No link is followed. Raises ConfigurationError for a folder that cannot be read.
    """
    found = []
    try:
        for parent, folders, names in os.walk(folder, onerror=_fail):
            folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
            kept = (name for name in names if name not in but and not name.endswith(NOT_KEPT))
            found += [Path(parent, name) for name in kept if not name.startswith(HIDDEN)]
    except OSError as error:
        raise ConfigurationError(
            f"The state folder {folder} cannot be read: {error.strerror}.", next_step="The backup needs all of it."
        ) from None
    return sorted(path for path in found if not path.is_symlink())


def _fail(error: OSError) -> None:
    raise error


def back_up_files(archive: Path, role: Role, name: str, files: Iterable[Path]) -> FilesManifest:
    """Write these files into a new archive, even while their owner runs. Raises ConfigurationError.

    An SQLite database is copied with SQLite's backup function. Other files are copied as they are, because their
    writers replace them atomically.
    """
    require_new(archive)
    paths = {f"{number:06d}": file.expanduser().absolute() for number, file in enumerate(dict.fromkeys(files))}
    try:
        with tempfile.TemporaryDirectory(dir=archive.absolute().parent, prefix=".backup.") as folder:  # mode 0700
            copies = [_copy(path, Path(folder, member)) for member, path in paths.items()]
            named = {member: str(path) for member, path in paths.items()}
            manifest = FilesManifest(role=role, name=name, paths=named, **contents_of(copies))
            pack(archive.absolute(), manifest, copies)
            return manifest
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        raise ConfigurationError(f"The backup {archive} cannot be written: {what}{error.strerror}.") from None
    except sqlite3.Error as error:
        raise ConfigurationError(f"A database cannot be copied: {error}.") from None


class Restore:
    """An unpacked backup. Nothing is written to its paths before `apply`.

    Attributes:
        manifest: What the backup holds.
        missing: Paths that `apply` writes.
        same: Paths that hold the same content already.
    """

    def __init__(self, archive: Path, folder: Path, role: Role) -> None:
        """Unpack into `folder`, and compare. Raises ConfigurationError if a path has different content."""
        self.manifest = unpack(archive, folder, FilesManifest, lambda name: sys.maxsize if name.isdecimal() else None)
        self._folder = folder
        if self.manifest.role != role or set(self.manifest.paths) != set(self.manifest.members):
            raise ConfigurationError(f"{archive} is the backup of another role: {self.manifest.role}.")
        self._targets = {member: Path(path) for member, path in self.manifest.paths.items()}
        if not all(path.is_absolute() for path in self._targets.values()):
            raise ConfigurationError(f"{archive} names a path that is not absolute.")
        self.missing = [path for path in self._targets.values() if not os.path.lexists(path)]
        self.same = [path for member, path in self._targets.items() if self._is_same(member, path)]
        others = [str(path) for path in self._targets.values() if path not in self.missing and path not in self.same]
        if others:
            raise ConfigurationError(
                f"These files exist with different content: {', '.join(others)}.",
                next_step="Move them away so that the backup can replace them. Nothing was changed.",
            )

    def apply(self) -> None:
        """Write the missing files, mode 0600, in folders that only their owner can open. Raises ConfigurationError."""
        try:
            for member, path in self._targets.items():
                if path in self.missing:
                    _make_folder(path.parent)
                    draft = path.with_name(f".{path.name}.restored")
                    draft.unlink(missing_ok=True)
                    with open(self._folder / member, "rb") as content:
                        copy_private(content, draft)
                    os.link(draft, path)  # unlike a rename, it replaces nothing
                    draft.unlink()
        except OSError as error:
            raise ConfigurationError(
                f"{error.filename} cannot be written: {error.strerror}.", next_step="Then run it again."
            ) from None

    def _is_same(self, member: str, path: Path) -> bool:
        try:
            return path.is_file() and sha256_of(path) == self.manifest.members[member]
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from None


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it. Only their owner can open the new ones."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def copy_database(path: Path, to: Path) -> None:
    """Copy an SQLite database into a new file, mode 0600, while others use it. Raises sqlite3.Error and OSError.

    The database is opened for writing, because otherwise SQLite leaves a journal next to it. A missing database is not
    created.
    """
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    address = f"{path.absolute().as_uri()}?mode=rw"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=LOCKED_WITHIN_S)) as source,
        closing(sqlite3.connect(to)) as copy,
    ):
        source.backup(copy)


def _copy(path: Path, to: Path) -> Path:
    if path.suffix == DATABASE:
        copy_database(path, to)
    else:
        with open(path, "rb") as content:
            copy_private(content, to)
    return to
