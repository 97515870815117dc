"""The Markdown pages for readers: the documentation, the pages at the root of the repository, and the pages next to
code.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
BESIDE_CODE = ("contracts/README.md", "examples/prefect/README.md")
PAGES = sorted([ROOT / name for name in (*AT_THE_ROOT, *BESIDE_CODE)] + list((ROOT / "docs").rglob("*.md")))


def name(page: Path) -> str:
    """Return the page's path from the root of the repository."""
    return str(page.relative_to(ROOT))
