"""How the search of the site ranks pages. The theme's own engine searches; this prepares its index.

* Words are compared without the ending of a plural, "-ing" or "-ed". Words of questions, such as "how", do not count.
* A title counts as ten words of text.
* Guides for customers come before other guides, and both before references, which name everything.
* `<!-- also: invoice, tax -->` below a heading adds words that people type and the section does not use.
"""

from __future__ import annotations

import re
from typing import Any

TITLE = 10
ALSO = re.compile(r"^<!-- also: (.+?) -->$", re.M)
_INDEXED = re.compile(r"<p>also: (.+?)</p>\s*")
_QUESTIONS = (
    "a an and any are as at be by can could did do does for from had has have how i if in into is it its me my of on",
    "one or our should so some that the their them then there these they this to was we were what when where",
    "which who why will with would you your",
)
_CUSTOMERS, _GUIDE, _OTHER = 2.0, 1.0, 0.4


def boost(source: str, sections: list[str]) -> dict[str, Any]:
    """Return how the search treats a page, by its path and the titles of the sections of the menu that contain it.

    Decisions are for those who build the grid, and are left out.
    """
    room = source.partition("/")[0]
    if room == "decisions":
        return {"exclude": True}
    if room == "tutorial" or "For customers" in sections:
        return {"boost": _CUSTOMERS}
    return {"boost": _GUIDE if room == "how-to" else _OTHER}


def hide(markdown: str) -> str:
    """Put the added words where the search sees them and a reader does not."""
    return ALSO.sub(lambda found: f"<p hidden>also: {found[1]}</p>", markdown)


def prepare(index: Any) -> None:
    """Set how the index (`SearchIndex` of the theme) compares and weighs words, before it is written."""
    index.config["separator"] = _separator()
    index.config["fields"] = {"title": {"boost": TITLE}, "tags": {"boost": TITLE}, "text": {"boost": 1}}
    for entry in index.entries:
        if found := _INDEXED.search(entry["text"]):
            entry["text"] = _INDEXED.sub("", entry["text"])
            entry["tags"] = [*entry.get("tags", []), *found[1].split(", ")]


def _separator() -> str:
    """Return the expression (of JavaScript) for what lies between words. It is used for pages and for queries."""
    words = "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in " ".join(_QUESTIONS).split())
    between = r"[^\w.,]+|(?<!\d)[.,]|[.,](?!\d)"  # 1,000 and 3.5 are words
    endings = r"(?<=\w{3})(?<!s)s\b|(?<=\w{4})(?:ing|ed)\b"
    return rf"{between}|\b(?:{words})\b|{endings}"
