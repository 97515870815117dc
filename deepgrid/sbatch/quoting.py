"""Quotes text of users. No other code puts such text into a batch script."""

from __future__ import annotations

import re

_ASCII = re.compile(r"[ -~\n\t]*\Z")  # plain characters, checked quickly
_OPTION_OR_PATH = re.compile(r"(--[a-z-]+(=[a-zA-Z0-9_./-]+)?|-[a-zA-Z]|(/[a-zA-Z0-9_.-]+)+)\Z")


class Quoted(str):
    """A text that is quoted as one word of bash."""


LONGEST_LABEL = 200  # bytes; Slurm refuses step names beyond about 1,000, file systems refuse file names beyond 255


def short_name(name: str) -> str:
    """Return the first 200 bytes of a name, without a part of a character."""
    return name.encode()[:LONGEST_LABEL].decode(errors="ignore")


def quote(text: str) -> Quoted:
    """`text` as one word of bash that means exactly its UTF-8 bytes, in any locale.

    Plain characters, letters of any script, tabs and line ends are put between single quotes
    unchanged. Others are escaped: sbatch refuses carriage returns, old bash mangles control
    characters, shellcheck warns about typographic quotes. shellcheck also warns about unquoted
    `A==`, `(a,b)` and `then`, so only options and paths stay without quotes. Raises ValueError for NUL.
    """
    if "\0" in text:
        raise ValueError("NUL cannot be passed to a process")
    if _OPTION_OR_PATH.match(text):
        return Quoted(text)
    if _ASCII.match(text) or all(_plain(c) for c in text):
        return Quoted("'" + text.replace("'", "'\\''") + "'")
    return Quoted("$'" + "".join(_escape(c) for c in text) + "'")


def only_quoted(value: object) -> object:
    """Return finalizer of each Jinja expression. Only numbers and quoted words may pass."""
    if isinstance(value, (Quoted, int)):
        return value
    raise TypeError(f"a template prints a {type(value).__name__} that was not quoted")


def _plain(char: str) -> bool:
    return " " <= char <= "~" or char in "\n\t" or (char > "~" and char.isalnum())


def _escape(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if _plain(char):
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
