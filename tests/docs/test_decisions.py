"""Every decision has the same form, and the index names each once."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
FORM = re.compile(
    r"# (?P<number>\d{4})\. (?P<title>[^\n]+)\n\nDate: \d{4}-\d\d-\d\d\. Status: \w[^#]*\.\n"
    r"\n## Context\n\n.+\n## Decision\n\n.+\n## Consequences\n\n.+",
    re.S,
)


def test_every_decision_has_the_form() -> None:
    pages = sorted(FOLDER.glob("[0-9]*.md"))
    found = {page: FORM.fullmatch(page.read_text()) for page in pages}
    assert not [page.name for page, form in found.items() if form is None or not page.name.startswith(form["number"])]
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))


def test_the_index_names_every_decision_once_with_its_title() -> None:
    named = re.findall(r"^\* \[(\d{4})\]\((\S+)\): (.+)$", (FOLDER / "index.md").read_text(), re.M)
    titles = [(page.name[:4], page.name, _title(page)) for page in FOLDER.glob("[0-9]*.md")]
    assert sorted(named) == sorted(titles)


def _title(page: Path) -> str:
    return page.read_text().splitlines()[0].partition(". ")[2]
