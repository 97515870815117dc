"""Makes text from other parties harmless for terminals, logs and pages."""

from __future__ import annotations

import unicodedata

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control, direction, surrogates, line separators


def is_steering(character: str) -> bool:
    """Whether a character controls a terminal, the direction of writing or lines."""
    return unicodedata.category(character) in _STEERING


def plain(text: str, *, keep: str = "") -> str:
    """`text` with a space for each character that controls a terminal, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(" " if c not in keep and is_steering(c) else c for c in text)


def marked(text: str) -> str:
    """`text` with a mark such as `[U+202E]` for each character that controls a terminal or the direction of writing."""
    if text.isprintable():
        return text
    return "".join(f"[U+{ord(c):04X}]" if is_steering(c) else c for c in text)
