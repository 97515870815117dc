"""The modules that may be read, their limits, and the ways in which git reaches their repositories.

On the customer's machine, git reaches them as the customer's own git does, or by mirrors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from deepgrid.errors import ConfigurationError
from deepgrid.modules.source import Source

MIRRORS_VARIABLE = "DEEPGRID_MODULE_MIRRORS"
# These say how to reach hosts.
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_CONFIG_GLOBAL")


@dataclass(frozen=True)
class ModuleLimits:
    """Bounds on the modules of one workflow; `docs/reference/modules.md` lists the defaults.

    uses: modules in all, including modules in modules.
    depth: how deep modules may use modules.
    within_s: for all modules together.
    fetch_within_s: for each call of git.
    repository_bytes: what git may write for one repository.
    git_memory_bytes: address space of each program of git, 0 for no limit.
    file_bytes: a module file, and the text that its template becomes.
    template_within_s, template_cpu_s, template_memory_bytes: to fill in one Jinja template.
    template_steps: to fill in one template of Go's syntax.
    """

    uses: int = 100
    depth: int = 8
    within_s: float = 120.0
    fetch_within_s: float = 60.0
    repository_bytes: int = 128 * 1024**2
    git_memory_bytes: int = 0
    file_bytes: int = 256 * 1024
    template_within_s: float = 10.0
    template_cpu_s: int = 5
    template_memory_bytes: int = 512 * 1024**2
    template_steps: int = 200_000


class Unavailable(Exception):
    """A file is not available. `transient` says whether a retry may help."""

    def __init__(self, what: str, *, transient: bool = False) -> None:
        super().__init__(what)
        self.transient = transient


class Reach(Protocol):
    """The repositories that the resolution of modules may reach, and how."""

    def require(self, source: Source) -> None:
        """Raise Unavailable if a module must not be read from there."""

    def address(self, url: str) -> str:
        """Return where to fetch the repository `url` from."""

    def options(self) -> Sequence[str]:
        """Further settings of git, `name=value` each."""

    def environment(self) -> Mapping[str, str]:
        """Return the environment of git."""


class CustomerReach:
    """Folders of this machine, and all repositories that the customer's git reaches, with mirrors and credentials."""

    def __init__(self) -> None:
        self._mirrors = mirrors()

    def require(self, source: Source) -> None:
        """Nothing is forbidden: the customer reads with its own rights."""

    def address(self, url: str) -> str:
        return mirror_address(url, self._mirrors)

    def options(self) -> Sequence[str]:
        return ()

    def environment(self) -> dict[str, str]:
        """Return the user's environment, with credential helpers and keys, but without variables that redirect git.

        git and ssh cannot prompt: they have no terminal, and may start no program that asks.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        asks = {"GIT_ASKPASS": "/bin/false", "SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "never"}
        return own | asks | {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh:file", "LC_ALL": "C"}


def mirrors() -> list[tuple[str, str]]:
    """Return the mirrors of $DEEPGRID_MODULE_MIRRORS, such as `https://example.org/=https://mirror.example.org/hpc/`.

    Returns:
        Pairs of the beginning of an address, and what to fetch from instead.

    Raises:
        ConfigurationError: An entry is not FROM=TO with addresses that git may use.
    """
    return [_pair(entry) for entry in os.environ.get(MIRRORS_VARIABLE, "").split()]


def mirror_address(url: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return where to fetch the repository `url` from. The longest matching beginning counts."""
    matching = [(start, to) for start, to in pairs if f"{url}/".startswith(f"{start}/")]
    start, to = max(matching, key=lambda pair: len(pair[0]), default=("", ""))
    return to + url[len(start) :]


def _pair(entry: str) -> tuple[str, str]:
    start, _, to = entry.partition("=")
    start = start if "://" in start else f"https://{start}"
    if not (_is_address(start) and _is_address(to)):
        raise ConfigurationError(
            f"{MIRRORS_VARIABLE} has an entry that names no mirror.",
            next_step="Write FROM=TO, with addresses that start with https://, ssh:// or file://, without passwords.",
        )
    return start.rstrip("/"), to.rstrip("/")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        password = parts.password or (parts.scheme == "https" and parts.username)
        place = parts.path.strip("/") if parts.scheme == "file" else parts.hostname
    except ValueError:
        return False
    known = parts.scheme in ("https", "ssh", "file") and not (parts.hostname or "").startswith("-")
    return bool(known and place and not password and not parts.query and not parts.fragment)
