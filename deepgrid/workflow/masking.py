"""Secrets of a definition, hidden: the services keep a definition for its customer in this form. Pure.

A secret is the value of a field that the schema marks so, an environment variable with a name such as `HF_TOKEN`, and
the account and the query of an address. A secret that is written into a command is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from deepgrid.errors import InputError
from deepgrid.workflow.models import Definition

MASK = "***"
ADDRESSES = frozenset({"url", "endpointUrl"})
_SECRET_NAME = re.compile(
    r"(?i)(^|_)(token|secret|password|passwd|passphrase|credentials?|api_?key|access_?key|private_?key)$"
)
Place = tuple[str | int, ...]


def mask_secrets(content: bytes) -> bytes:
    """Return a definition in canonical form with MASK in place of each secret."""
    values = json.loads(content)
    _replace(values, lambda _, value, is_address: _masked_address(value) if is_address else MASK)
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def is_secret_name(name: str) -> bool:
    """Return whether an environment variable of this name has a secret."""
    return _SECRET_NAME.search(name) is not None


def masked_places(values: Any) -> list[str]:
    """Return the places of the secrets that a definition hides, such as `input.s3.secretAccessKey`."""
    return [_name(values, place) for place, value, _ in _secrets(values, ()) if MASK in value]


def fill_secrets(values: Any, secrets: Mapping[str, str]) -> Any:
    """Return the definition with these secrets in the places that hide one. Raises InputError for a missing one."""
    whole = json.loads(json.dumps(values))

    def fill(place: Place, value: str, _: bool) -> str:
        if MASK not in value:
            return value
        name = _name(values, place)
        if not secrets.get(name):
            raise InputError(f"The secret {name} of the job is not kept.", next_step="Give its value again.")
        return secrets[name]

    _replace(whole, fill)
    return whole


def _name(values: Any, place: Place) -> str:
    """Return a place as users read it: `steps[0].run.container.password`; `env.HF_TOKEN` for a variable."""
    if place[-1] == "value" and isinstance(place[-2], int):
        holder = values
        for part in place[:-1]:
            holder = holder[part]
        place = (*place[:-2], holder["key"])
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


@cache
def secret_fields() -> frozenset[str]:
    """Return the names of the fields that the schema marks as secret."""
    return frozenset(_secret_fields(Definition.model_json_schema(by_alias=True)))


def _secret_fields(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        properties = part.get("properties")
        for name, field in properties.items() if isinstance(properties, dict) else ():
            if isinstance(field, dict) and field.get("x-secret"):
                yield name
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _secret_fields(inner)


def _secrets(part: Any, place: Place) -> Iterator[tuple[Place, str, bool]]:
    """Yield the place and value of each secret, and whether it is an address."""
    if isinstance(part, list):
        for at, inner in enumerate(part):
            yield from _secrets(inner, (*place, at))
    if not isinstance(part, dict):
        return
    is_secret_variable = isinstance(part.get("key"), str) and is_secret_name(part["key"])
    for name, value in part.items():
        if not isinstance(value, str):
            yield from _secrets(value, (*place, name))
        elif name in secret_fields() or (name == "value" and is_secret_variable):
            yield (*place, name), value, False
        elif name in ADDRESSES and (MASK in value or _masked_address(value) != value):
            yield (*place, name), value, True


def _replace(values: Any, new: Callable[[Place, str, bool], str]) -> None:
    for place, value, is_address in list(_secrets(values, ())):
        holder = values
        for part in place[:-1]:
            holder = holder[part]
        holder[place[-1]] = new(place, value, is_address)


def _masked_address(address: str) -> str:
    """Return the address without the account and the query, which may hold secrets."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return MASK
    account, at, host = parts.netloc.rpartition("@")
    whole = parts._replace(
        netloc=f"{MASK}@{host}" if at and account else parts.netloc,
        query=MASK if parts.query else "",
        fragment=MASK if parts.fragment else "",
    )
    return whole.geturl()
