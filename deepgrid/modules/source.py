"""Parses `source` of a module: its forms, and the meaning of relative ones."""

from __future__ import annotations

import os.path
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from deepgrid.errors import InputError

FILE_NAME = "module.yaml"
FORMS = "HOST/OWNER/REPO[/PATH][@TAG or @COMMIT], https://, ssh:// or file:// address[//PATH][@...], or ./FOLDER"

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
_PART = re.compile(r"[A-Za-z0-9_.~+-]+\Z")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*\Z")


@dataclass(frozen=True)
class Folder:
    """A folder on this machine, for the author of a module."""

    path: str

    @property
    def file(self) -> str:
        return os.path.join(self.path, FILE_NAME)


@dataclass(frozen=True)
class Repository:
    """A folder in a git repository. `ref` is a tag or a commit, empty for the newest commit."""

    url: str
    path: str = ""
    ref: str = ""

    @property
    def file(self) -> str:
        return posixpath.join(self.path, FILE_NAME)

    @property
    def shown(self) -> str:
        """The file's name in messages."""
        return f"{self.url}//{self.file}" + (f"@{self.ref}" if self.ref else "")


Source = Folder | Repository


def parse_source(text: str, at: Source) -> Source:
    """Return the meaning of `source: text` in a file of `at`. Raises InputError, with the allowed forms.

    A module in a repository may name folders of the same repository and commit, but nothing on this machine.
    """
    if text.startswith("/") or text.split("/", 1)[0] in (".", ".."):
        return _folder(text, at)
    if not text.isascii() or not text.isprintable():  # urlsplit drops line ends
        raise InputError(f"is not one of {FORMS}")
    bare, ref = _split_ref(text)
    if "://" in bare:
        address, _, path = bare.partition("://")[2].partition("//")
        url = urlsplit(f"{bare.partition('://')[0]}://{address}")
    else:
        host, *parts = bare.split("/")
        url = urlsplit(f"https://{host}/{'/'.join(parts[:2])}")
        path = "/".join(parts[2:])
        if len(parts) < 2:
            raise InputError(f"is not one of {FORMS}")
    _check(url, at)
    return Repository(url.geturl(), _inside(path), ref)


def _folder(text: str, at: Source) -> Source:
    if isinstance(at, Folder):
        return Folder(os.path.normpath(os.path.join(at.path, text)))
    if text.startswith("/"):
        raise InputError("names a folder of this machine; a module in a repository must not")
    return Repository(at.url, _inside(posixpath.normpath(posixpath.join(at.path, text))), at.ref)


def _split_ref(text: str) -> tuple[str, str]:
    """Split at the last @, unless it belongs to user@host of ssh."""
    bare, at, ref = text.rpartition("@")
    if not at or (bare.startswith("ssh://") and "/" not in bare.removeprefix("ssh://")):
        return text, ""
    if not _REF.match(ref) or ".." in ref:
        raise InputError("has no tag or commit after its '@' that git accepts")
    return bare, ref


def _check(url: SplitResult, at: Source) -> None:
    """Raise InputError unless the address is safe for git. No part of it can be mistaken for an option."""
    user, separator, host = url.netloc.rpartition("@")
    if url.scheme == "file":
        if isinstance(at, Repository) and not at.url.startswith("file://"):
            raise InputError("names a repository of this machine; a module in another repository must not")
        known = not url.netloc
    else:
        known = url.scheme in ("https", "ssh") and bool(_HOST.match(host))
    if separator and url.scheme == "https":
        raise InputError("must not contain a user or password; git's credential helpers have them")
    if separator and not _USER.match(user):
        raise InputError("has a user name that ssh does not accept")
    parts = [part for part in url.path.split("/") if part]
    if not known or not parts or not all(_PART.match(part) and part not in (".", "..") for part in parts):
        raise InputError(f"is not one of {FORMS}")
    if url.query or url.fragment:
        raise InputError(f"is not one of {FORMS}")


def _inside(path: str) -> str:
    """Return a folder inside a repository, '' for its root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not all(_PART.match(part) and part != ".." for part in parts):
        raise InputError("must stay inside its repository, and use only letters, digits and _.~+-")
    return "/".join(parts)
