"""The blocks of code in the pages, indented ones too, and the commands in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.pages import PAGES, name

MARKER = re.compile(r"\s*<!-- not run: (.+?) -->\s*")
# Programs at the beginning of lines show that a block without a language has commands.
PROGRAMS = re.compile(r"(?:\w+=\S+\s+)*(?:dps|prefect|\./run|\.venv/bin/python|install|printf|sacctmgr|[A-Z_]+=\S+)\b")
BEGINNINGS = {
    "$ ": "console",
    "#!/bin/sh": "sh",
    "import ": "python",
    "from ": "python",
    "steps:": "yaml",
    "resources:": "yaml",
}
SHELLS = ("sh", "bash", "console")


@dataclass(frozen=True)
class Block:
    """A block of code, where it begins, and why it is not run, if the page says so."""

    page: str
    line: int
    language: str
    text: str
    not_run: str = ""

    @property
    def kind(self) -> str:
        """The language, given or shown by the beginning; empty if unknown."""
        if self.language:
            return self.language
        for beginning, language in BEGINNINGS.items():
            if self.text.lstrip().startswith(beginning):
                return language
        begun = [line for line in self.lines if line.strip() and not line.startswith((" ", "#"))]
        return "sh" if begun and all(PROGRAMS.match(line.lstrip("$ ")) for line in begun) else ""

    @property
    def lines(self) -> list[str]:
        """The lines, continued ones as one."""
        return self.text.replace("\\\n", " ").splitlines()

    @property
    def script(self) -> str:
        """The input for a shell: all of a script, or the text after the prompts of a session."""
        if self.kind != "console":
            return self.text
        return "\n".join(line.removeprefix("$ ") for line in self.lines if line.startswith("$ "))

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> list[Block]:
    """Return all blocks of all pages."""
    return [block for page in PAGES for block in _of(page)]


def commands(script: str) -> list[list[str]]:
    """Return the simple commands of a script as words, without assignments and comments."""
    found = []
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>()")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue  # a quotation that continues in the next line
        found += _simple(words)
    return found


@cache
def inline_commands() -> tuple[tuple[str, str], ...]:
    """Return commands in inline code of the pages' text, each with its page."""
    found = []
    for page in PAGES:
        for token in tokens(page):
            spans = [child.content for child in token.children or () if child.type == "code_inline"]
            found += [(name(page), span) for span in spans if re.match(r"(?:dps|\./run) ", span)]
    return tuple(found)


def _simple(words: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if re.fullmatch(r"[&|;()]+", word):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        while part and re.match(r"\w+=", part[0]):
            part.pop(0)
    return [part for part in parts if part]


def _of(page: Path) -> list[Block]:
    found = []
    before: Token | None = None
    for token in tokens(page):
        if token.type in ("fence", "code_block") and token.map:
            marker = MARKER.fullmatch(before.content) if before and before.type == "html_block" else None
            reason = marker[1] if marker else ""
            found.append(Block(name(page), token.map[0] + 1, token.info.split(" ")[0], token.content, reason))
        before = token
    return found


@cache
def tokens(page: Path) -> list[Token]:
    """Return the parts of a page. Do not change them: they are shared."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())
