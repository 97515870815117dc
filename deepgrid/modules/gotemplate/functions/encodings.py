"""Encodings, checksums and paths."""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import json
import posixpath
import re
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

from deepgrid.modules.gotemplate.functions.arguments import require_short, text
from deepgrid.modules.gotemplate.functions.yaml import to_yaml
from deepgrid.modules.gotemplate.lookup import Unfit, plain_data, text_of

_UNSAFE_IN_PAGES = re.compile("[<>&\u2028\u2029]")


def _json(value: Any, *, indent: int | None = None, is_raw: bool = False) -> str:
    separators = (",", ": " if indent else ":")
    made = json.dumps(
        _for_json(plain_data(value)), indent=indent, ensure_ascii=False, sort_keys=True, separators=separators
    )
    return made if is_raw else _UNSAFE_IN_PAGES.sub(lambda found: f"\\u{ord(found[0]):04x}", made)


def _for_json(value: Any) -> Any:
    """Return the value with numbers that have no fraction as whole ones, as Go writes them."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise Unfit("this number has no form in JSON")
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: _for_json(part) for key, part in value.items()}
    return [_for_json(part) for part in value] if isinstance(value, list) else value


def _from_json(value: Any) -> Any:
    try:
        return json.loads(text(value), parse_int=float, parse_constant=_not_json)
    except (ValueError, RecursionError):
        raise Unfit("the text is no JSON") from None


def _not_json(word: str) -> Any:
    raise ValueError(word)


def _decode(decode: Callable[[bytes], bytes], value: Any) -> str:
    try:
        return decode(text(value).encode()).decode()
    except (ValueError, binascii.Error):
        raise Unfit("the text is not of that encoding") from None


def _hash(name: str) -> Callable[[Any], str]:
    return lambda value: hashlib.new(name, text(value).encode()).hexdigest()


def _from_base64(value: Any) -> str:
    return _decode(lambda data: base64.b64decode(data, validate=True), value)


def _escaped_for_pages(*values: Any) -> str:
    return html.escape("".join(map(text_of, values))).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _escaped_for_scripts(*values: Any) -> str:
    given = "".join(map(text_of, values))
    require_short(6 * len(given))
    return "".join(map(_in_script, given))


def _in_script(character: str) -> str:
    if character in "\\'\"":
        return f"\\{character}"
    if character in "<>&=" or character < " " or (character > "\x7f" and not character.isprintable()):
        return f"\\u{ord(character):04X}"
    return character


def _base(path: Any) -> str:
    return posixpath.basename(text(path).rstrip("/")) or ("/" if text(path) else ".")


def _clean(path: Any) -> str:
    cleaned = posixpath.normpath(text(path))
    return f"/{cleaned.lstrip('/')}" if cleaned.startswith("/") else cleaned


def _extension(path: Any) -> str:
    name = text(path).rpartition("/")[2]
    return f".{name.rpartition('.')[2]}" if "." in name else ""


ENCODINGS: dict[str, Callable[..., Any]] = {
    "toYaml": to_yaml,
    "toJson": _json,
    "toRawJson": lambda value: _json(value, is_raw=True),
    "toPrettyJson": lambda value: _json(value, indent=2),
    "fromJson": _from_json,
    "b64enc": lambda value: base64.b64encode(text(value).encode()).decode(),
    "b64dec": _from_base64,
    "b32enc": lambda value: base64.b32encode(text(value).encode()).decode(),
    "b32dec": lambda value: _decode(base64.b32decode, value),
    "sha1sum": _hash("sha1"),
    "sha256sum": _hash("sha256"),
    "sha512sum": _hash("sha512"),
    "adler32sum": lambda value: str(zlib.adler32(text(value).encode())),
    "html": _escaped_for_pages,
    "js": _escaped_for_scripts,
    "urlquery": lambda *values: quote_plus("".join(map(text_of, values))),
    "base": _base,
    "dir": lambda path: _clean(posixpath.dirname(text(path))),
    "clean": _clean,
    "ext": _extension,
    "isAbs": lambda path: text(path).startswith("/"),
}
for _name in ("base", "clean", "dir", "ext", "isAbs"):  # of files: the same on Unix
    ENCODINGS[f"os{_name[0].upper()}{_name[1:]}"] = ENCODINGS[_name]
