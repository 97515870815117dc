"""Tags and notes as programs write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.services.kept_messages import Mark

Tags = Mapping[str, str] | Iterable[str]
"""Tags by name, or texts such as `project=wing`."""

MOST_TAGS, LONGEST_VALUE, LONGEST_NOTE = 16, 80, 500
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which no encoding can write
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def tags_of(tags: Tags | None) -> dict[str, str]:
    """Return tags by name. A text without `=` is a name with an empty value. Raises InputError."""
    if isinstance(tags, str):
        tags = [tags]
    pairs = tags.items() if isinstance(tags, Mapping) else (text.partition("=")[::2] for text in tags or ())
    found = {str(name).strip(): str(value).strip() for name, value in pairs}
    for name, value in found.items():
        if not _NAME.fullmatch(name) or len(value) > LONGEST_VALUE or not value.isprintable():
            raise InputError(
                f"{name[:60]!r} is not a tag.",
                next_step=f"Write it like project=wing, with at most {LONGEST_VALUE} characters behind the `=`.",
            )
    if len(found) > MOST_TAGS:
        raise InputError(f"A job has at most {MOST_TAGS} tags.")
    return found


def mark_of(tags: Tags | None, note: str | None) -> Mark | None:
    """Return what the services keep about a job; None without tags and note. Raises InputError."""
    found, note = tags_of(tags), "" if note is None else note
    if not isinstance(note, str) or _HALF.search(note):
        raise InputError("A note is a text of whole characters.")
    if len(note) > LONGEST_NOTE:
        raise InputError(f"A note has at most {LONGEST_NOTE} characters.")
    if not found and not note:
        return None
    from deepgrid.services.kept_messages import Mark  # here: commands that only read the chain do not load it

    return Mark(tags=found, note=note)
