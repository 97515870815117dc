"""Mirrors of repositories: addresses from which this machine fetches instead."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from deepgrid.errors import ConfigurationError

VARIABLE = "DEEPGRID_MODULE_MIRRORS"


@dataclass(frozen=True)
class Mirrors:
    """Pairs of the beginning of an address, and what to fetch from instead."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_environment(cls) -> Mirrors:
        """The mirrors of $DEEPGRID_MODULE_MIRRORS, such as `https://example.org/=https://mirror.example.org/hpc/`.

        Raises:
            ConfigurationError: An entry is not FROM=TO with addresses that git may use.
        """
        return cls(tuple(_pair(entry) for entry in os.environ.get(VARIABLE, "").split()))

    def address(self, url: str) -> str:
        """Where to fetch the repository `url` from. The longest matching beginning counts."""
        matching = [(start, to) for start, to in self.pairs if f"{url}/".startswith(f"{start}/")]
        if not matching:
            return url
        start, to = max(matching, key=lambda pair: len(pair[0]))
        return to + url[len(start) :]


def _pair(entry: str) -> tuple[str, str]:
    start, _, to = entry.partition("=")
    start = start if "://" in start else f"https://{start}"
    if not (_is_address(start) and _is_address(to)):
        raise ConfigurationError(
            f"{VARIABLE} has an entry that names no mirror.",
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
