"""The Markdown pages for readers: the documentation, and the pages at the root of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "contracts/README.md")
PAGES = sorted([ROOT / name for name in AT_THE_ROOT] + list((ROOT / "docs").rglob("*.md")))


def name(page: Path) -> str:
    """Return the page's path from the root of the repository."""
    return str(page.relative_to(ROOT))
