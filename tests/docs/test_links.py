"""No page names a file or an anchor that does not exist."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from pymdownx.slugs import slugify

from tests.docs.blocks import tokens
from tests.docs.pages import PAGES, ROOT, name

SLUG = slugify(case="lower")
PATH_IN_TEXT = re.compile(r"(?<![\w/])docs/[\w/-]+\.md\b")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    dead = [link for link in _links(page) if not _exists(page, link)]
    assert not dead


def test_paths_of_pages_that_files_name_exist() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / one for one in tracked.splitlines() if Path(one).suffix not in (".png", ".svg", ".txt")]
    named = {(path, str(file)) for file in files if file.is_file() for path in PATH_IN_TEXT.findall(_text(file))}
    assert not [(path, file) for path, file in sorted(named) if not (ROOT / path).exists()]


def _links(page: Path) -> list[str]:
    inner = [child for token in tokens(page) for child in token.children or ()]
    links = [child.attrs.get("href") or child.attrs.get("src") for child in inner]
    return [str(link) for link in links if link and not re.match(r"[a-z]+:", str(link))]


def _exists(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in _anchors(target))


@cache
def _anchors(page: Path) -> set[str]:
    headings = [after for before, after in pairwise(tokens(page)) if before.type == "heading_open"]
    return {SLUG("".join(child.content for child in heading.children or ()), "-") for heading in headings}


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except UnicodeDecodeError:
        return ""
