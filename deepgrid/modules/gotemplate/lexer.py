"""Splits a template into text and actions, and each action into tokens. Recognises Go's syntax by its actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from deepgrid.modules.template import TemplateFault

SPACE = " \t\r\n"
_LEFT_TRIM = re.compile(r"-[ \t\r\n]")
_RIGHT = re.compile(r"([ \t\r\n]-)?\}\}")
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+?(?=[ \t\r\n]-\}\})|[ \t\r\n]+)
    |(?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`)
    |(?P<number>[+-]?(?:0[xXoObB][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9_]+)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?))
    |(?P<character>'(?:\\.[0-9a-fA-F]*|[^'\\\n])')
    |(?P<variable>\$\w*)
    |(?P<field>\.[^\W\d]\w*)
    |(?P<dot>\.)
    |(?P<word>[^\W\d]\w*)
    |(?P<mark>:=|[=|(),])""",
    re.X,
)
_AFTER = re.compile(r"[ \t\r\n.,|:)(=]|\}\}|\Z")  # what may follow a name or a number
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.S)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"', "'": "'"}


@dataclass(frozen=True)
class Text:
    """Text between actions, without what is trimmed."""

    text: str
    line: int


@dataclass(frozen=True)
class Token:
    """A token of an action. `spaced` says whether white space precedes it."""

    kind: str
    text: str
    line: int
    spaced: bool


@dataclass(frozen=True)
class Action:
    """The tokens between {{ and }}."""

    tokens: tuple[Token, ...]
    line: int


class Lexer:
    """Reads one template from its beginning to its end. Raises TemplateFault."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line, self._counted = 1, 0

    def parts(self) -> Iterator[Text | Action]:
        """Yield text and actions in their order. Comments are left out."""
        while True:
            start = self._text.find("{{", self._at)
            end = start if start >= 0 else len(self._text)
            trims = start >= 0 and bool(_LEFT_TRIM.match(self._text, start + 2))
            between = self._text[self._at : end]
            between = between.rstrip(SPACE) if trims else between
            if between:
                yield Text(between, self._line_of(self._at))
            if start < 0:
                return
            self._at = start + (4 if trims else 2)
            if self._text.startswith("/*", self._at):
                self._skip_comment()
            else:
                yield self._action()

    def _line_of(self, offset: int) -> int:
        """Return the line at an offset. Offsets must not decrease."""
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _skip_comment(self) -> None:
        line = self._line_of(self._at)
        end = self._text.find("*/", self._at + 2)
        if end < 0:
            raise TemplateFault("template: the comment is not closed by */", line)
        self._at = end + 2
        if not self._ends_action():
            raise TemplateFault("template: a comment must end with */}} or */ -}}", line)

    def _action(self) -> Action:
        line, tokens, spaced = self._line_of(self._at), [], False
        while not self._ends_action():
            found = _TOKEN.match(self._text, self._at)
            here = self._line_of(self._at)
            if found is None:
                raise self._unreadable(line, here)
            kind = str(found.lastgroup)
            if kind in ("number", "variable", "field", "dot", "word") and not _AFTER.match(self._text, found.end()):
                raise TemplateFault(f"template: {found[0]!r} is followed by a character that does not fit", here)
            if kind != "space":
                tokens.append(Token(found[0] if kind == "mark" else kind, found[0], here, spaced))
            spaced = kind == "space"
            self._at = found.end()
        return Action(tuple(tokens), line)

    def _ends_action(self) -> bool:
        """Return whether the action ends here. If so, continue after it and after the space that it trims."""
        found = _RIGHT.match(self._text, self._at)
        if not found:
            return False
        self._at = found.end()
        if found[1]:
            while self._at < len(self._text) and self._text[self._at] in SPACE:
                self._at += 1
        return True

    def _unreadable(self, line: int, here: int) -> TemplateFault:
        if self._at >= len(self._text):
            return TemplateFault("template: the action {{ is not closed by }}", line)
        c = self._text[self._at]
        what = {
            '"': "a quoted text must be closed on its line",
            "`": "a text in backquotes is not closed",
            "'": "a character in single quotes must be one, as in 'x'; texts stand in double quotes",
        }.get(c, f"{c!r} does not belong into an action")
        return TemplateFault(f"template: {what}", here)


def unquote(token: Token) -> str:
    """Return the value of a text or a character in quotes."""
    if token.text.startswith("`"):
        return token.text[1:-1].replace("\r", "")
    return _ESCAPE.sub(lambda found: _unescape(found, token.line), token.text[1:-1])


def _unescape(found: re.Match[str], line: int) -> str:
    hexadecimal, octal, letter = found[1] or found[2] or found[3], found[4], found[5]
    if letter is not None:
        if letter not in _ESCAPED:
            raise TemplateFault(f"template: \\{letter} is no escape sequence of Go", line)
        return _ESCAPED[letter]
    code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
    is_byte = bool(found[1] or octal)
    if (is_byte and code > 0x7F) or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        raise TemplateFault("template: an escape sequence is no character", line)
    return chr(code)


_JINJA_BLOCK = r"\{%[-+]?\s*(?:if|for|set|raw|macro|block|filter|call|include|import|from|extends|with)\b"
_JINJA_ACTION = r"\{\{[-+]?\s*(?:(?:inputs|step|job|loop)(?:\.|\[|\s*\|)|(?:fail|range|namespace)\()"
# A field, a variable, a comment, a keyword, or a function with an argument after a space: no expression of Jinja.
_GO_ACTION = r"""\{\{(?:-\s)?\s*\(*\s*
    (?:\.(?:[A-Za-z]|\s|\}\})|\$|/\*|`
    |(?:if|else|end|range|with|define|template|block|break|continue)\b(?![.([]|\s*\|)
    |[A-Za-z]\w*\s+(?:[.$"`]|[0-9]))"""
_FIRST = re.compile(f"(?P<jinja>{_JINJA_BLOCK}|{_JINJA_ACTION})|(?P<go>{_GO_ACTION})", re.X)


def is_go_template(text: str) -> bool:
    """Return whether the first action that only one of the two languages has is one of Go."""
    found = _FIRST.search(text)
    return found is not None and found["go"] is not None
