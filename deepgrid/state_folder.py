"""Whether this account can make and write the state folder of a role."""

from __future__ import annotations

import os
from pathlib import Path


def unwritable_part(folder: Path) -> Path | None:
    """The part of this path that this account cannot write: the folder, or the nearest above it that exists.

    None if the folder can be written, or made.
    """
    nearest = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    return None if nearest.is_dir() and os.access(nearest, os.W_OK) else nearest
