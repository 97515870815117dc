"""Lists and maps. A list is never changed, a map only by `set`, `unset`, `merge` and `mergeOverwrite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deepgrid.modules.gotemplate.functions.arguments import count, items, mapping, position, text
from deepgrid.modules.gotemplate.lookup import Unfit, Unset, is_list, is_true, kind_of, plain_data, text_of


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict) or is_list(value):
        return len(value)
    raise Unfit(f"{kind_of(value)} has no length")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(text(key), Unset(text(key), is_entry=True))
        elif isinstance(value, str):
            value = _at(value.encode(), key)
        else:
            value = _at(items(value), key)
    return value


def _at(values: Sequence[Any], key: Any) -> Any:
    if not 0 <= position(key) < len(values):
        raise Unfit(f"the index {key} is out of range: there are {len(values)}")
    return values[key]


def _slice(value: Any, *bounds: Any) -> Any:
    whole = value.encode() if isinstance(value, str) else list(items(value))
    if len(bounds) > 2:
        raise Unfit("at most two positions are wanted")
    start, stop = (*(position(bound) for bound in bounds), *(0, len(whole))[len(bounds) :])
    if not 0 <= start <= stop <= len(whole):
        raise Unfit(f"the positions {start} and {stop} are out of range: there are {len(whole)}")
    part = whole[start:stop]
    return part.decode(errors="replace") if isinstance(part, bytes) else part


def _concat(*lists: Any) -> list[Any]:
    return [item for one in lists for item in items(one)]


def _has(wanted: Any, values: Any) -> bool:
    plain = plain_data(wanted)
    return any(_same(plain, value) for value in items(values))


def _same(plain: Any, value: Any) -> bool:
    other = plain_data(value)
    return type(plain) is type(other) and bool(plain == other)


def _unique(values: Any) -> list[Any]:
    kept: list[Any] = []
    known: set[tuple[type, str]] = set()
    for value in items(values):
        key = type(value), text_of(value)
        kept += [] if key in known else [value]
        known.add(key)
    return kept


def _chunk(size: Any, values: Any) -> list[list[Any]]:
    size, whole = count(size), list(items(values))
    if size == 0:
        raise Unfit("the size of a chunk must be at least 1")
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _dict(*pairs: Any) -> dict[str, Any]:
    keys, values = pairs[::2], (*pairs[1::2], "")
    return {text_of(key): value for key, value in zip(keys, values, strict=False)}


def _set(target: Any, key: Any, value: Any) -> dict[str, Any]:
    mapping(target)[text(key)] = value
    return mapping(target)


def _unset(target: Any, key: Any) -> dict[str, Any]:
    mapping(target).pop(text(key), None)
    return mapping(target)


def _pluck(key: Any, *maps: Any) -> list[Any]:
    return [mapping(one)[key] for one in maps if text(key) in mapping(one)]


def _dig(*arguments: Any) -> Any:
    if len(arguments) < 3:
        raise Unfit("keys, a default and a map are wanted")
    *keys, otherwise, value = arguments
    for key in keys:
        if text(key) not in mapping(value):
            return otherwise
        value = value[key]
    return value


def _merge(target: Any, *sources: Any, overwrites: bool = False) -> dict[str, Any]:
    own = mapping(target)
    for source in sources:
        for key, value in mapping(source).items():
            if isinstance(value, dict) and isinstance(own.get(key), dict) and own[key] is not value:
                _merge(own[key], value, overwrites=overwrites)
            elif overwrites or not is_true(own.get(key)):
                own[key] = value
    return own


def _merged_over(target: Any, *sources: Any) -> dict[str, Any]:
    return _merge(target, *sources, overwrites=True)


COLLECTIONS: dict[str, Callable[..., Any]] = {
    "len": _length,
    "index": _index,
    "slice": _slice,
    "list": lambda *values: list(values),
    "tuple": lambda *values: list(values),
    "first": lambda values: items(values)[0] if items(values) else None,
    "last": lambda values: items(values)[-1] if items(values) else None,
    "rest": lambda values: list(items(values))[1:],
    "initial": lambda values: list(items(values))[:-1],
    "append": lambda values, value: [*items(values), value],
    "push": lambda values, value: [*items(values), value],
    "prepend": lambda values, value: [value, *items(values)],
    "concat": _concat,
    "reverse": lambda values: list(items(values))[::-1],
    "uniq": _unique,
    "without": lambda values, *left_out: [value for value in items(values) if not _has(value, left_out)],
    "has": _has,
    "compact": lambda values: [value for value in items(values) if is_true(value)],
    "chunk": _chunk,
    "sortAlpha": lambda values: sorted(text_of(value) for value in items(values)),
    "dict": _dict,
    "get": lambda source, key: mapping(source).get(text(key), ""),
    "set": _set,
    "unset": _unset,
    "hasKey": lambda source, key: text(key) in mapping(source),
    "keys": lambda *maps: sorted(key for one in maps for key in mapping(one)),
    "values": lambda source: [mapping(source)[key] for key in sorted(mapping(source))],
    "pluck": _pluck,
    "dig": _dig,
    "pick": lambda source, *keys: {key: mapping(source)[key] for key in keys if text(key) in mapping(source)},
    "omit": lambda source, *keys: {key: value for key, value in mapping(source).items() if key not in keys},
    "merge": _merge,
    "mergeOverwrite": _merged_over,
    "deepCopy": plain_data,
}
