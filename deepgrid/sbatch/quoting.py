"""The only way by which a user's text gets into a batch script."""

from __future__ import annotations

import re

_ASCII = re.compile(r"[ -~\n\t]*\Z")  # plain characters, found out at once
_OPTION_OR_PATH = re.compile(r"(--[a-z-]+(=[a-zA-Z0-9_./-]+)?|-[a-zA-Z]|(/[a-zA-Z0-9_.-]+)+)\Z")


class Quoted(str):
    """A text that is one word of bash, whatever is in it."""


def quote(text: str) -> Quoted:
    """`text` as one word of bash that means exactly its UTF-8 bytes, in any locale.

    Plain characters, letters of any script, tabs and line ends stand as they are between single
    quotes. Others are escaped: sbatch refuses a carriage return, old bash mangles control
    characters, shellcheck takes a typographic quote for a slip. So it does `A==`, `(a,b)` and
    `then`: of all words, only options and paths stand without quotes. Raises ValueError for NUL.
    """
    if "\0" in text:
        raise ValueError("NUL cannot be passed to a process")
    if _OPTION_OR_PATH.match(text):
        return Quoted(text)
    if _ASCII.match(text) or all(_plain(c) for c in text):
        return Quoted("'" + text.replace("'", "'\\''") + "'")
    return Quoted("$'" + "".join(_escaped(c) for c in text) + "'")


def only_quoted(value: object) -> object:
    """Jinja's last step for each expression: numbers and quoted words may pass, nothing else."""
    if isinstance(value, (Quoted, int)):
        return value
    raise TypeError(f"a template puts out a {type(value).__name__} that was not quoted")


def _plain(char: str) -> bool:
    return " " <= char <= "~" or char in "\n\t" or (char > "~" and char.isalnum())


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if _plain(char):
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
