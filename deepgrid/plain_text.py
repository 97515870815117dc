"""Makes text from other parties harmless for terminals, logs and pages, and hidden characters visible."""

from __future__ import annotations

import unicodedata

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control, direction, surrogates, line separators

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs without ink


def is_steering(character: str) -> bool:
    """Return whether a character controls a terminal, the direction of writing or lines."""
    return unicodedata.category(character) in _STEERING


def plain(text: str, *, keep: str = "") -> str:
    """`text` with a space for each character that controls a terminal, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(" " if c not in keep and is_steering(c) else c for c in text)


def mark_controls(text: str) -> str:
    """`text` with a mark such as `[U+202E]` for each character that controls a terminal or the direction of writing."""
    if text.isprintable():
        return text
    return "".join(f"[U+{ord(c):04X}]" if is_steering(c) else c for c in text)


def visible(text: str) -> str:
    """`text` with code point and name for each character that one cannot see, such as <U+200B ZERO WIDTH SPACE>."""
    return "".join(f"<{character_name(c)}>" if _is_hidden(c) else c for c in text)


def without_hidden(text: str) -> str:
    """`text` without characters that one cannot see."""
    return "".join(c for c in text if not _is_hidden(c))


def character_name(character: str) -> str:
    """Code point and name of a character, such as U+00E9 LATIN SMALL LETTER E WITH ACUTE."""
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character')}"


def _is_hidden(c: str) -> bool:
    return c != " " and (not c.isprintable() or c in _BLANK or 0xFE00 <= ord(c) <= 0xFE0F)
