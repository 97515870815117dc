"""Workflow files to start from: links to some of the examples that need nothing besides a cluster."""

from __future__ import annotations

import re
from pathlib import Path

from deepgrid.errors import InputError

FOLDER = Path(__file__).parent


def templates() -> list[tuple[str, str]]:
    """Return the names of the templates, with the first words about each."""
    return [(file.stem, _about(file)) for file in sorted(FOLDER.glob("*.yaml"))]


def copy_template(name: str, folder: Path) -> Path:
    """Write a template into `folder`, under a name that is free. Raises InputError if it cannot be written."""
    return write_copy(name, (FOLDER / f"{name}.yaml").read_text("utf-8"), folder)


def write_copy(name: str, text: str, folder: Path) -> Path:
    """Write a workflow file into `folder`, under a name that is free. Raises InputError if it cannot be written."""
    for number in range(1, 100):
        file = folder / (f"{name}.yaml" if number == 1 else f"{name}-{number}.yaml")
        try:
            with file.open("x", encoding="utf-8") as new:
                new.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None
        return file
    raise InputError(f"There are too many files like {name}.yaml here.", next_step="Remove some.")


def _about(file: Path) -> str:
    words = ""
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            break
        words += " " + line.lstrip("# ")
    return re.split(r"[.:;] ", words.strip())[0].rstrip(".")
