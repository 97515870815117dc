"""Variables of the existing client of the grid, from the environment and from `.env` files.

They replace an address book and a key file: `--book`, `--key`, DEEPGRID_BOOK and DPS_KEY_FILE come first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import typer

from deepgrid.errors import ConfigurationError

RPC, WS, CONTRACT = "METASCHEDULER_RPC", "METASCHEDULER_WS", "METASCHEDULER_SMART_CONTRACT"
JOBS, LOGS, ORACLE = "SBATCH_ENDPOINT", "LOGGER_ENDPOINT", "METASCHEDULER_ORACLE"
KEY, KEY_PATH = "ETH_PRIVATE_KEY", "ETH_PRIVATE_KEY_PATH"
NAMES = (RPC, WS, CONTRACT, JOBS, LOGS, ORACLE, KEY, KEY_PATH)
FILES = (".env.local", ".env")  # in the current folder; the first that has a variable counts
MAX_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Variables:
    """The variables that are set. `origins` maps each variable from a file to that file."""

    values: Mapping[str, str] = field(repr=False)
    origins: Mapping[str, Path]

    def get(self, name: str) -> str:
        """Return the value; empty if the variable is not set."""
        return self.values.get(name, "")

    def where(self, name: str) -> str:
        """Return the variable and its file, for messages."""
        return f"{name} of {self.origins[name]}" if name in self.origins else name


def variables() -> Variables:
    """Return the variables from the environment, or from the files if they are not set there.

    Raises ConfigurationError if others can read a file with such variables.
    """
    values = {name: os.environ[name] for name in NAMES if os.environ.get(name)}
    origins: dict[str, Path] = {}
    for path in map(Path, FILES):
        for name, value in _variables_of(path).items():
            if name not in values:
                values[name], origins[name] = value, path
    return Variables(values, origins)


def warn(sentence: str) -> None:
    """Print a warning about the environment, once per process."""
    if sentence not in _warned:
        _warned.add(sentence)
        typer.echo(f"dps: {sentence}", err=True)


_warned: set[str] = set()


def _variables_of(path: Path) -> dict[str, str]:
    """Return the variables of a file that concern us. A file without any may have any permissions."""
    if not path.is_file():  # a pipe would wait for a writer
        return {}
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            text = file.read(MAX_FILE_BYTES).decode(errors="replace")
    except OSError:  # what cannot be read is not ours
        return {}
    if not any(name in text for name in NAMES):
        return {}
    from dotenv import dotenv_values  # here, because few folders have such a file

    found = dotenv_values(stream=StringIO(text), interpolate=False)
    ours = {name: value for name, value in found.items() if name in NAMES and value}
    if ours and (about.st_mode & 0o077 or about.st_uid != os.getuid()):
        raise ConfigurationError(
            f"Others can read or change {path}, which sets {', '.join(sorted(ours))}.",
            next_step=f"If you wrote it, run `chmod 600 {path}`. If it came with files of others, remove it.",
        )
    return ours
