"""The kinds of arguments that functions take. Each of these raises Unfit for a value of another kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from deepgrid.modules.gotemplate.lookup import Unfit, is_list, kind_of

LARGEST = 2**63
MOST_MADE = 100_000  # items that one call may ask for by a number
MOST_CHARACTERS = 2**20  # that one call may make of less


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise Unfit(f"{kind_of(value)} is given where a text is wanted")
    return value


def items(value: Any) -> Sequence[Any]:
    """Return a list, as it is."""
    if not is_list(value):
        raise Unfit(f"{kind_of(value)} is given where a list is wanted")
    return cast(Sequence[Any], value)


def mapping(value: Any) -> dict[str, Any]:
    """Return a map, as it is."""
    if not isinstance(value, dict):
        raise Unfit(f"{kind_of(value)} is given where a map is wanted")
    return value


def count(value: Any, most: int = MOST_MADE) -> int:
    """Return a whole number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Unfit(f"a number from 0 to {most} is wanted")
    return value


def position(value: Any) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit(f"{kind_of(value)} is given where a whole number is wanted")
    return value


def in_range(value: int) -> int:
    """Return a number of at most 64 bits."""
    if not -LARGEST <= value < LARGEST:
        raise Unfit("the result has more than 64 bits")
    return value


def require_short(characters: int) -> None:
    """Raise Unfit for a text that is too long."""
    if characters > MOST_CHARACTERS:
        raise Unfit("makes too much text in between")
