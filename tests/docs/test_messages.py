"""The messages that guides quote in their tables of symptoms are messages of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.pages import ROOT

PACKAGES = ("deepgrid", "orchestration", "flows", "tasks", "deployments", "blocks")
PAGES = ("provider", "operator", "waiting", "alerts", "web", "terminal")
GAP = "\0"  # a value inside of a message
QUOTED = re.compile(r"`([^`]+)`")
CUT = re.compile(r"\.\.\.|[;:,]|\([^)]*\)|\b[A-Z]{3,}\b")
LEAST = 8  # characters of a part that can be recognised


def quotes(page: str) -> Iterator[str]:
    """Yield what the first column of a table under "it says", "symptom" and the like quotes: sentences, not names."""
    for line in (ROOT / "docs" / "how-to" / f"{page}.md").read_text().splitlines():
        if line.startswith("| `"):
            yield from (
                one
                for one in QUOTED.findall(line.split(" | ")[0])
                if " " in one and not one.startswith(("dps ", "prefect "))
            )


@cache
def texts() -> tuple[str, ...]:
    """Return all texts in the code, with gaps for values."""
    found = set[str]()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = (one.value if isinstance(one, ast.Constant) else GAP for one in node.values)
                    found.add("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(re.sub(r"%[sd]|\{\w*\}", GAP, node.value))
        found |= {file.read_text() for file in (ROOT / package).rglob("*.sh")}
    return tuple(found)


def is_message(quote: str) -> bool:
    """Return whether each part of the quote is in the code, or one text with gaps makes the whole of it."""
    whole = "\n".join(texts())
    parts = [part.strip(" .") for part in CUT.split(quote)]
    if all(part in whole for part in parts if len(part) >= LEAST):
        return True
    begun = [one.rstrip(".").split(GAP) for one in texts() if GAP in one.strip(GAP) and one[:LEAST] == quote[:LEAST]]
    return any(re.fullmatch(".+".join(map(re.escape, parts)), quote.rstrip(" .")) for parts in begun)


@pytest.mark.parametrize("page", PAGES)
def test_quoted_messages_are_in_the_code(page: str) -> None:
    assert [quote for quote in quotes(page) if not is_message(quote)] == []


def test_the_guides_quote_messages() -> None:
    assert sum(len(list(quotes(page))) for page in PAGES) > 30
    assert not is_message("The cluster is on holiday until ...")
