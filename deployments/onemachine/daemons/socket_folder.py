"""A short folder under /tmp for the Unix sockets of one grid."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from deepgrid.errors import ConfigurationError


def socket_folder(state: Path) -> Path:
    """A short folder for unix sockets (their paths may have 108 bytes), private to this state folder.

    Raises ConfigurationError when another account owns a folder of this name.
    """
    path = socket_path(state)
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise ConfigurationError(f"{path} belongs to another account.", next_step="Remove it.") from None
    path.chmod(0o755)
    return path


def socket_path(state: Path) -> Path:
    """Path of `socket_folder`, without creating it."""
    digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:10]
    return Path("/tmp") / f"deepgrid-{digest}"
