"""The release of this installation: the version of its deployments. It is the commit, or else the package's version."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
# Another account than the owner of the files may ask, such as the operator's on a machine with units.
ASK = ["git", "-c", "safe.directory=*", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*"]
TIMEOUT_S = 10.0


def release() -> str:
    """Return the commit, with `-dirty` if files differ from it."""
    try:
        asked = subprocess.run(ASK, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return version("deepgrid")
    return asked.stdout.strip()


def find_release() -> dict[str, str]:
    """Return the release as the output of a build step of `prefect deploy`."""
    return {"version": release()}
