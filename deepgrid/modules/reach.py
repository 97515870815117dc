"""Which modules may be read, and how git reaches their repositories: on the customer's machine, as its own git does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from deepgrid.modules.mirrors import Mirrors
from deepgrid.modules.source import Source

_KEPT = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_CONFIG_GLOBAL",
)  # these say how to reach hosts


class Unavailable(Exception):
    """A file is not available. `transient` says whether a retry may help."""

    def __init__(self, what: str, *, transient: bool = False) -> None:
        super().__init__(what)
        self.transient = transient


class Reach(Protocol):
    """What the resolution of modules may reach, and how."""

    def require(self, source: Source) -> None:
        """Raise Unavailable if a module must not be read from there."""
        ...

    def address(self, url: str) -> str:
        """Where to fetch the repository `url` from."""
        ...

    def options(self) -> Sequence[str]:
        """Further settings of git, `name=value` each."""
        ...

    def environment(self) -> Mapping[str, str]:
        """The environment of git."""
        ...


class CustomerReach:
    """Folders of this machine, and all repositories that the customer's git reaches, with mirrors and credentials."""

    def __init__(self) -> None:
        self._mirrors = Mirrors.from_environment()

    def require(self, source: Source) -> None:
        """Nothing is forbidden: the customer reads with its own rights."""

    def address(self, url: str) -> str:
        """The repository or its mirror."""
        return self._mirrors.address(url)

    def options(self) -> Sequence[str]:
        """None."""
        return ()

    def environment(self) -> dict[str, str]:
        """The user's environment, with credential helpers and keys, but without variables that redirect git.

        git and ssh cannot prompt: they have no terminal, and may start no program that asks.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        return own | {
            "GIT_ALLOW_PROTOCOL": "https:ssh:file", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C",
        }  # fmt: skip
