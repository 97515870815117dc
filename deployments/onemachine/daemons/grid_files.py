"""Files and folders of the one-machine grid: private from the start, rendered from templates, short for sockets."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.files.text_templates import text_templates

_TEMPLATES = text_templates("deployments.onemachine", "conf")


def render_template(name: str, target: Path, mode: int = 0o644, **values: object) -> None:
    """Render `conf/<name>.j2` into `target`."""
    write_text(target, _TEMPLATES.get_template(f"{name}.j2").render(**values), mode)


def write_text(target: Path, text: str, mode: int) -> None:
    """Write a file with exactly `mode`, for any umask."""
    target.touch(mode=mode)
    target.chmod(mode)
    target.write_text(text)


def socket_folder(state: Path) -> Path:
    """Return a short folder for unix sockets (their paths may have 108 bytes), private to this state folder.

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
    """Return the path of `socket_folder`, without creating it."""
    digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:10]
    return Path("/tmp") / f"deepgrid-{digest}"
