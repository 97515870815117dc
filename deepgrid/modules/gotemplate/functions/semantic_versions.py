"""sprig's `semver` and `semverCompare`, by the documentation of Masterminds/semver."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from deepgrid.modules.gotemplate.functions.arguments import in_range, text
from deepgrid.modules.gotemplate.lookup import Part, Unfit

LONGEST = 256  # characters of a version, or of a constraint
_NAMES = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_TAIL = rf"(?:-(?P<pre>{_NAMES}))?(?:\+(?P<meta>{_NAMES}))?"
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?" + _TAIL, re.ASCII)
_WILD = r"(\d+|[xX*])"
_COMPARISON = re.compile(rf"(?P<operator>[=!<>~^]*)v?{_WILD}(?:\.{_WILD})?(?:\.{_WILD})?{_TAIL}", re.ASCII)
_HYPHEN_RANGE = re.compile(r"([^\s,|]+)\s+-\s+([^\s,|]+)")

Precedence = tuple[int, int, int, tuple[Any, ...]]
RELEASE = (1,)  # sorts behind the prereleases


class _Bound(NamedTuple):
    """One comparison. `fixed` parts of the version are given; wildcards and missing parts are 0."""

    version: Precedence
    fixed: int


def _precedence(numbers: list[int], pre: str | None) -> Precedence:
    """Return a value that sorts as the versions do: a prerelease is before its release."""
    names = [(0, int(name), "") if name.isdigit() else (1, 0, name) for name in pre.split(".")] if pre else []
    return numbers[0], numbers[1], numbers[2], (0, tuple(names)) if pre else RELEASE


def _given(value: Any) -> str:
    given = text(value).strip()
    if len(given) > LONGEST:
        raise Unfit(f"has more than {LONGEST} characters")
    return given


def _parsed(value: Any) -> re.Match[str]:
    found = _VERSION.fullmatch(_given(value))
    if found is None:
        raise Unfit(f"{text(value)[:40]!r} is no version such as 1.2.3")
    return found


def _numbers(found: re.Match[str]) -> list[int]:
    return [in_range(int(part or 0)) for part in found.groups()[:3]]


def _version(value: Any) -> Part:
    found = _parsed(value)
    numbers, pre, meta = _numbers(found), found["pre"] or "", found["meta"] or ""
    whole = ".".join(map(str, numbers)) + (f"-{pre}" if pre else "") + (f"+{meta}" if meta else "")
    fields = dict(zip(("Major", "Minor", "Patch"), numbers, strict=True))
    return Part("the version", fields | {"Prerelease": pre, "Metadata": meta, "Original": found[0]}, whole)


def _tilde(version: Precedence, bound: _Bound) -> bool:
    """Return whether the version is in the range of the minor version; of the major one if only that is given."""
    if not bound.fixed or (bound.version[:3] == (0, 0, 0) and bound.fixed == 3):
        return version >= bound.version
    kept = min(bound.fixed, 2)
    return version >= bound.version and version[:kept] == bound.version[:kept]


def _caret(version: Precedence, bound: _Bound) -> bool:
    """Return whether nothing changed up to the first number that is not 0, of those that are given."""
    kept = next((at + 1 for at in range(bound.fixed) if bound.version[at]), bound.fixed)
    return version >= bound.version and version[:kept] == bound.version[:kept]


def _is_exactly(version: Precedence, bound: _Bound) -> bool:
    return version == bound.version if bound.fixed == 3 else _tilde(version, bound)


def _differs(version: Precedence, bound: _Bound) -> bool:
    if bound.fixed == 3:
        return version != bound.version
    is_other_range = version[: bound.fixed] != bound.version[: bound.fixed]
    return is_other_range or (bound.fixed == 2 and version[3] != bound.version[3])


def _at_most(version: Precedence, bound: _Bound) -> bool:
    return version <= bound.version if bound.fixed == 3 else version[: bound.fixed] <= bound.version[: bound.fixed]


OPERATORS: dict[str, Callable[[Precedence, _Bound], bool]] = {
    "": _is_exactly,
    "=": _is_exactly,
    "!=": _differs,
    ">": lambda version, bound: not _at_most(version, bound),
    "<": lambda version, bound: version < bound.version,
    ">=": lambda version, bound: version >= bound.version,
    "=>": lambda version, bound: version >= bound.version,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def _fits(constraint: Any, version: Any) -> bool:
    """Return whether a version meets all comparisons of one of the alternatives, which `||` separates."""
    found = _parsed(version)
    own = _precedence(_numbers(found), found["pre"])
    wanted = re.sub(r"([=!<>~^])\s+", r"\1", _HYPHEN_RANGE.sub(r">=\1 <=\2", _given(constraint)))
    alternatives = [re.split(r"\s*,\s*|\s+", part.strip()) for part in wanted.split("||")]
    met = [[_meets(own, comparison) for comparison in alternative] for alternative in alternatives]
    return any(map(all, met))


def _meets(version: Precedence, comparison: str) -> bool:
    found = _COMPARISON.fullmatch(comparison)
    if found is None or found["operator"] not in OPERATORS:
        raise Unfit(f"{comparison[:40]!r} is no constraint such as >=1.2.3")
    parts = found.groups()[1:4]
    fixed = next((at for at, part in enumerate(parts) if part is None or part in "xX*"), 3)
    numbers = [in_range(int(parts[at])) if at < fixed else 0 for at in range(3)]
    bound = _Bound(_precedence(numbers, found["pre"]), fixed)
    if version[3] != RELEASE and not found["pre"] and not (found["operator"] == "!=" and fixed == 3):
        return False  # a prerelease fits only a comparison that names one
    return OPERATORS[found["operator"]](version, bound)


VERSIONS: dict[str, Callable[..., Any]] = {"semver": _version, "semverCompare": _fits}
