"""Translates what PyYAML says about a file that it cannot read into sentences for the author of the file."""

from __future__ import annotations

import re

import yaml

from deepgrid.plain_text import character_name, visible

# What PyYAML says, and what the author reads. `opened` is the place where the list, mapping or text begins.
_SENTENCES = tuple(
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (r"expected ',' or '\]'", "the list that [ opens in {opened} is not closed before here, or lacks a comma"),
        (r"expected ',' or '}'", "the mapping that {{ opens in {opened} is not closed before here, or lacks a comma"),
        (r"expected the node content, but found '<stream end>'", "the file ends where a value should follow"),
        (r"expected the node content, but found '(.+)'", "a value is expected here, not {0}"),
        (r"found unknown escape character '(.+)'", "\\{0} means nothing in double quotes; use single quotes"),
        (r"found undefined alias '(.+)'", "*{0} repeats a value that no &{0} above marks; text with * needs quotes"),
        (r"found duplicate anchor '(.+?)'", "&{0} marks a second value; each mark needs a name of its own"),
        (r"found character '(.)' that cannot start any token", "a value that begins with {0} must be in quotes"),
        (r"expected chomping or indentation indicators", "the text of | or > begins on the next line"),
        (r"expected a single document", "a second document begins here (---); a workflow file has one"),
        (r"expected '<document start>'", "this does not belong to the value above; is this file a workflow?"),
        (r"could not find expected ':'", "a field needs a colon after its name, as in `name: value`"),
    )
)
_BEHIND = "expected <block end>, but found"
_UNFITTING = "the indentation of this line fits no line above it"


def sentence_for(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return one sentence for the author of the file."""
    mark, problem = error.problem_mark, error.problem or ""
    if mark is None:
        return visible(problem)
    before = text[mark.index - mark.column : mark.index]
    odd = _odd_indent(text, mark)
    if odd or "'\\t'" in problem:
        return f"{odd or 'a tab'} cannot indent; indent with spaces" + (", not tabs" if odd in ("", "a tab") else "")
    if error.context == "while scanning a quoted scalar" and error.context_mark and "end of stream" in problem:
        return f"the file ends before the quote that opens in {_place_words(error.context_mark)} is closed"
    if problem.startswith(_BEHIND):
        return _after_value(text, mark) if before.strip() else _UNFITTING
    if problem == "mapping values are not allowed here":
        return "a value that contains ': ' must be in quotes" if ": " in before else _UNFITTING
    told = " ".join(part for part in (error.context, problem) if part)
    for pattern, sentence in _SENTENCES:
        if found := pattern.search(told):
            opened = _place_words(error.context_mark) if error.context_mark else "an earlier line"
            return visible(sentence.format(*found.groups(), opened=opened))
    return visible(told)


def _odd_indent(text: str, mark: yaml.Mark) -> str:
    """Return the first character other than a space before the text of the marked line, by its name."""
    found = re.match(r"[^\S\r\n]*", text[mark.index - mark.column :])
    odd = next((c for c in found[0] if c != " "), "") if found else ""
    return "a tab" if odd == "\t" else character_name(odd) if odd else ""


def _after_value(text: str, mark: yaml.Mark) -> str:
    """Return the fault for text after a value in quotes. The quote may open many lines before."""
    opened = None
    try:
        for token in yaml.scan(text):
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"') and token.end_mark.index <= mark.index:
                opened = token.start_mark
    except yaml.YAMLError:
        pass
    if opened is None:
        return "unexpected text after a value"
    where = f"the quote of {_place_words(opened)}" if opened.line != mark.line else "a value in quotes"
    return f"unexpected text after {where}; is that quote closed where it should be?"


def _place_words(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"
