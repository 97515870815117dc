"""The archive of a backup: a tar file with `manifest.json`, the dump of the database and, unless left out, `secret`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from deepgrid import private_tar
from deepgrid.private_tar import BAD_CHECKSUMS, Contents, damaged

SECRET = "secret"
MOST_SECRET_BYTES = 1024

Kind = Literal["sqlite", "postgresql"]
DUMPS: dict[Kind, str] = {"sqlite": "database.sqlite", "postgresql": "database.dump"}


class Manifest(Contents):
    """What a backup holds. `schema_step` is the last migration, `made_at` unix seconds.

    `secret_sha256` is of the key, also if the archive does not hold it.
    """

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

    @property
    def dump(self) -> str:
        """Name of the member with the database."""
        return DUMPS[self.kind]


def unpack(archive: Path, folder: Path) -> Manifest:
    """Unpack the archive into the folder, and check it. Raises ConfigurationError."""
    manifest = private_tar.unpack(archive, folder, Manifest, _most_bytes)
    if manifest.dump not in manifest.members:
        raise damaged(archive, BAD_CHECKSUMS)
    return manifest


def _most_bytes(member: str) -> int | None:
    if member in DUMPS.values():
        return sys.maxsize
    return MOST_SECRET_BYTES if member == SECRET else None
