"""Reads the file of a module, from a folder or a repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from deepgrid.modules.reach import Reach, Unavailable
from deepgrid.modules.repositories import Repositories
from deepgrid.modules.sandbox_limits import ModuleLimits
from deepgrid.modules.source import Folder, Source

__all__ = ["FoundFile", "ModuleFiles", "Unavailable", "default_cache"]


@dataclass(frozen=True)
class FoundFile:
    """A module file: its text, its name in messages, and its exact source."""

    text: str
    name: str
    source: Source
    commit: str | None = None
    is_newest: bool = False


def default_cache() -> Path:
    """Folder of the cache of module files. It may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepgrid" / "modules"


class ModuleFiles:
    """Reads the modules of one resolution. `until` is its deadline by time.monotonic()."""

    def __init__(self, cache: Path, until: float, limits: ModuleLimits, reach: Reach) -> None:
        self._limits = limits
        self._reach = reach
        self._repositories = Repositories(cache, until, limits, reach)

    def find(self, source: Source) -> FoundFile:
        """Read the module at `source`. Raises Unavailable."""
        self._reach.require(source)
        if isinstance(source, Folder):
            return FoundFile(_text(_read(source, self._limits.file_bytes), source.file), source.file, source)
        pinned = self._repositories.pinned(source)
        content = self._repositories.read(pinned)
        return FoundFile(_text(content, source.shown), source.shown, pinned, pinned.ref, is_newest=not source.ref)


def _read(source: Folder, most_bytes: int) -> bytes:
    try:
        with open(source.file, "rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise Unavailable(f"{source.file} cannot be read ({error.strerror})") from None
    if len(content) > most_bytes:
        raise Unavailable(f"{source.file} is larger than {most_bytes // 1024} KiB")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unavailable(f"{name} is not UTF-8 text") from None
    if "\0" in text:
        raise Unavailable(f"{name} is not text")
    return text
