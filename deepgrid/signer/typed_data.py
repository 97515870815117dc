"""The typed data that the signer signs. Each message is rebuilt from checked fields; nothing is signed as it came.

* `Session`: a session key of the page, in the grid's domain, bound to the page's origin.
* `Permit`: of the customer's credits, to the grid's contract, with a short deadline.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from deepgrid.services.signing import session_keys
from deepgrid.signer.refused import MALFORMED, Refused

PERMIT_LASTS_S = 600
CLOCK_SLACK_S = 300

PERMIT = {"owner": "address", "spender": "address", "value": "uint256", "nonce": "uint256", "deadline": "uint256"}
KINDS = {**session_keys.TYPES, "Permit": [{"name": name, "type": kind} for name, kind in PERMIT.items()]}

_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,64}|[0-9]{1,78}")
_PUBLIC_KEY = re.compile(r"0x04[0-9a-fA-F]{128}")


@dataclass(frozen=True, slots=True)
class Typed:
    """Typed data as the page sent it, of a known kind. Values are not checked yet."""

    kind: str
    domain: dict[str, Any]
    message: dict[str, Any]

    @property
    def types(self) -> dict[str, list[dict[str, str]]]:
        """Our own definition of the kind."""
        return {self.kind: KINDS[self.kind]}


@dataclass(frozen=True, slots=True)
class Grid:
    """For whom and for what the signer signs. `now` is the later one of the chain's time and this machine's."""

    owner: str
    meta_scheduler: str
    domains: dict[str, dict[str, Any]]
    origin: str
    now: int


def parse(raw: Any) -> Typed:
    """Typed data of a known kind. Raises Refused."""
    try:
        data = json.loads(raw) if isinstance(raw, str) else raw
        kind, types, domain, message = data["primaryType"], dict(data["types"]), data["domain"], data["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused("This is not typed data.", MALFORMED) from None
    types.pop("EIP712Domain", None)
    if not (isinstance(kind, str) and isinstance(domain, dict) and isinstance(message, dict)):
        raise Refused("This is not typed data.", MALFORMED)
    if kind not in KINDS or types != {kind: KINDS[kind]}:
        raise Refused("The signer signs sessions and permits of this grid; this is something else.")
    if message.keys() != {field["name"] for field in KINDS[kind]}:
        raise Refused("The typed data has other fields than its type.", MALFORMED)
    return Typed(kind, domain, message)


def rebuild(typed: Typed, grid: Grid) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the domain and the message to sign, both rebuilt. Raises Refused."""
    domain = grid.domains[typed.kind]
    if not _same_domain(typed.domain, domain):
        raise Refused("The signature would be for another grid, chain or contract.")
    rule = {"Session": _session, "Permit": _permit}[typed.kind]
    return domain, rule(typed.message, grid)


def _session(message: dict[str, Any], grid: Grid) -> dict[str, Any]:
    key, end = _text(message["publicKey"], _PUBLIC_KEY, "public key"), _number(message["notAfter"])
    rights, origin = message["rights"], message["origin"]
    if not grid.now < end <= grid.now + session_keys.MAX_LIFETIME_S + CLOCK_SLACK_S:
        raise Refused(f"A session lasts at most {session_keys.MAX_LIFETIME_S // 3600} hours.")
    if rights not in ("read", "store", "read,store"):
        raise Refused("A session key may store definitions and read logs, nothing else.")
    if origin != grid.origin:
        raise Refused("The session names another origin than this page's.")
    return {"publicKey": bytes.fromhex(key[2:]), "notAfter": end, "rights": rights, "origin": origin}


def _permit(message: dict[str, Any], grid: Grid) -> dict[str, Any]:
    owner, spender = (str(message[name]).lower() for name in ("owner", "spender"))
    if owner != grid.owner.lower():
        raise Refused("The permit is of another account than the signer's.")
    if spender != grid.meta_scheduler.lower():
        raise Refused("The permit is for another contract than the grid's.")
    deadline = _number(message["deadline"])
    if not grid.now < deadline <= grid.now + PERMIT_LASTS_S + CLOCK_SLACK_S:
        raise Refused(f"A permit lasts at most {PERMIT_LASTS_S // 60} minutes.")
    value, nonce = _number(message["value"]), _number(message["nonce"])
    return {"owner": grid.owner, "spender": grid.meta_scheduler, "value": value, "nonce": nonce, "deadline": deadline}


def _same_domain(found: dict[str, Any], own: dict[str, Any]) -> bool:
    if found.keys() != own.keys() or (found["name"], found["version"]) != (own["name"], own["version"]):
        return False
    contract = str(found["verifyingContract"]).lower()
    return _number(found["chainId"]) == own["chainId"] and contract == str(own["verifyingContract"]).lower()


def _number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**256:
        return value
    if (
        isinstance(value, str)
        and _NUMBER.fullmatch(value)
        and (number := int(value, 0 if "x" in value else 10)) < 2**256
    ):
        return number
    raise Refused("A number of the typed data is malformed.", MALFORMED)


def _text(value: Any, form: re.Pattern[str], name: str) -> str:
    if isinstance(value, str) and form.fullmatch(value):
        return value
    raise Refused(f"The {name} is malformed.", MALFORMED)
