"""Says in plain words why YAML text cannot be read."""

from __future__ import annotations

import re

import yaml

from deepgrid.plain_text import named, visible

_BEHIND = "expected <block end>, but found"
_UNFITTING = "the indentation of this line fits no line above it"


def sentence_for(error: yaml.MarkedYAMLError, text: str) -> str:
    """One sentence for the author of the file."""
    mark, problem = error.problem_mark, error.problem or ""
    if mark is None:
        return visible(problem)
    before = text[mark.index - mark.column : mark.index]
    odd = _odd_indent(text, mark)
    if odd or "'\\t'" in problem:
        return f"{odd or 'a tab'} cannot indent; indent with spaces" + (", not tabs" if odd in ("", "a tab") else "")
    if error.context == "while scanning a quoted scalar" and error.context_mark and "end of stream" in problem:
        return f"the file ends before the quote that opens in {_shown(error.context_mark)} is closed"
    if problem.startswith(_BEHIND):
        return _after_value(text, mark) if before.strip() else _UNFITTING
    if problem == "mapping values are not allowed here":
        return "a value that contains ': ' must be in quotes" if ": " in before else _UNFITTING
    return visible(" ".join(part for part in (error.context, problem) if part))


def _odd_indent(text: str, mark: yaml.Mark) -> str:
    """The first character other than a space before the text of the marked line, by its name."""
    found = re.match(r"[^\S\r\n]*", text[mark.index - mark.column :])
    odd = next((c for c in found[0] if c != " "), "") if found else ""
    return "a tab" if odd == "\t" else named(odd) if odd else ""


def _after_value(text: str, mark: yaml.Mark) -> str:
    """Text behind a value in quotes. The quote may have been opened many lines before."""
    opened = None
    try:
        for token in yaml.scan(text):
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"') and token.end_mark.index <= mark.index:
                opened = token.start_mark
    except yaml.YAMLError:
        pass
    if opened is None:
        return "unexpected text behind a value"
    where = f"the quote of {_shown(opened)}" if opened.line != mark.line else "a value in quotes"
    return f"unexpected text behind {where}; is that quote closed where it should be?"


def _shown(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"
