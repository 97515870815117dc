"""Reads known_hosts files as OpenSSH does: patterns, hashed names, markers, several keys per host, unusable lines.

paramiko's own reader keeps one key per host and type, and raises an error for markers and some damaged lines.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import paramiko

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.login_settings import SSH_PORT

AUTHORITY, REVOKED = "@cert-authority", "@revoked"
RSA_ALGORITHMS = "rsa-sha2-512", "rsa-sha2-256"


@dataclass(frozen=True, slots=True)
class HostLine:
    """One usable line: the host names that it is for, a key, and its marker or an empty text."""

    names: str
    key: paramiko.PKey
    marker: str = ""

    def is_for(self, name: str) -> bool:
        """Return whether the line is for this host, in lower case. A negated pattern that matches excludes it."""
        if self.names.startswith("|"):
            return _is_hash_of(self.names, name)
        patterns = self.names.lower().split(",")
        if any(_matches(one[1:], name) for one in patterns if one.startswith("!")):
            return False
        return any(_matches(one, name) for one in patterns)


@dataclass(frozen=True)
class KnownHosts:
    """The usable lines of a known_hosts file."""

    lines: Sequence[HostLine]

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read the file. Raises ConfigurationError when it cannot be read."""
        try:
            return cls.parse(file.read_text(errors="replace"))
        except FileNotFoundError:
            raise ConfigurationError(
                f"{file} does not exist.", next_step="Make it with the host key of the login node."
            ) from None
        except OSError as fault:
            raise ConfigurationError(
                f"{file} cannot be read: {fault.strerror}.", next_step="Let this account read it."
            ) from None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the lines of a file. Skips comments, unusable lines, and keys of unknown types."""
        return cls([one for line in text.split("\n") if (one := _parse_line(line)) is not None])

    def of(self, host: str, port: int) -> HostKeys:
        """Return the keys of this host. Lines without a port count where none has its port, as for OpenSSH."""
        plain = host.lower()
        found = list(self._for(plain if port == SSH_PORT else f"[{plain}]:{port}"))
        return HostKeys(found or list(self._for(plain)))

    def _for(self, name: str) -> Iterator[HostLine]:
        return (line for line in self.lines if line.is_for(name))


@dataclass(frozen=True)
class HostKeys:
    """The lines about one host."""

    lines: Sequence[HostLine]

    @cached_property
    def trusted(self) -> list[paramiko.PKey]:
        """The keys that the host may show."""
        return [line.key for line in self.lines if not line.marker]

    @property
    def has_authority(self) -> bool:
        """Whether a line names an authority that signs host keys. Such signatures are not checked."""
        return any(line.marker == AUTHORITY for line in self.lines)

    def trusts(self, key: paramiko.PKey) -> bool:
        """Return whether the host may show this key."""
        return key in self.trusted and not self.revokes(key)

    def revokes(self, key: paramiko.PKey) -> bool:
        """Return whether this key must not be accepted, whatever other lines say."""
        return any(line.marker == REVOKED and line.key == key for line in self.lines)

    def algorithms(self) -> list[str]:
        """Return the algorithms of the trusted keys. A host with several keys is asked for one of these."""
        names: dict[str, None] = {}
        for key in self.trusted:
            names.update(dict.fromkeys(RSA_ALGORITHMS if key.get_name() == "ssh-rsa" else [key.get_name()]))
        return list(names)


def host_name(host: str, port: int) -> str:
    """Return how a known_hosts file names the host."""
    return host if port == SSH_PORT else f"[{host}]:{port}"


def _parse_line(line: str) -> HostLine | None:
    fields = line.split()
    marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
    if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", AUTHORITY, REVOKED):
        return None
    names, kind, encoded = fields[:3]
    try:
        return HostLine(names, paramiko.PKey.from_type_string(kind, b64decode(encoded, validate=True)), marker)
    except Exception:  # paramiko's readers of keys raise many kinds of errors for damaged keys
        return None


def _matches(pattern: str, name: str) -> bool:
    """Match with the wildcards * and ? only: brackets are part of names with a port."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name) is not None


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        return paramiko.HostKeys.hash_host(name, hashed) == hashed
    except (AssertionError, IndexError, ValueError, binascii.Error):  # not a hash of OpenSSH
        return False
