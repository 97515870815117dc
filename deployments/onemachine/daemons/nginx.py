"""nginx as a daemon of the grid."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

from deepgrid.files.private_files import make_private_folder, replace_file
from deployments.onemachine.daemons.processes import Daemon


def nginx(name: str, folder: Path, configuration: str, ready: Callable[[], bool]) -> Daemon:
    """nginx with this configuration, which is kept in `folder`. It logs to the daemon's log."""
    file = make_private_folder(folder) / "nginx.conf"
    replace_file(file, configuration.encode())
    return Daemon(name, ["nginx", "-e", "stderr", "-c", str(file)], ready)


def worker_account() -> str | None:
    """Account of nginx's worker processes, which nginx must be told if root starts it."""
    return pwd.getpwuid(0).pw_name if os.getuid() == 0 else None
