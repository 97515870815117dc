"""Tells templates of Go's syntax from those of Jinja by their actions."""

from __future__ import annotations

import re

_JINJA_BLOCK = r"\{%[-+]?\s*(?:if|for|set|raw|macro|block|filter|call|include|import|from|extends|with)\b"
_JINJA_ACTION = r"\{\{[-+]?\s*(?:(?:inputs|step|job|loop)(?:\.|\[|\s*\|)|(?:fail|range|namespace)\()"
# A field, a variable, a comment, a keyword, or a function with an argument after a space: no expression of Jinja.
_GO_ACTION = r"""\{\{(?:-\s)?\s*\(*\s*
    (?:\.(?:[A-Za-z]|\s|\}\})|\$|/\*|`
    |(?:if|else|end|range|with|define|template|block|break|continue)\b(?![.([]|\s*\|)
    |[A-Za-z]\w*\s+(?:[.$"`]|[0-9]))"""
_FIRST = re.compile(f"(?P<jinja>{_JINJA_BLOCK}|{_JINJA_ACTION})|(?P<go>{_GO_ACTION})", re.X)


def is_go_template(text: str) -> bool:
    """Whether the first action that only one of the two languages has is one of Go."""
    found = _FIRST.search(text)
    return found is not None and found["go"] is not None
