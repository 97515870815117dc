"""Addresses of bundles: each names one bundle, one use of it and an end, and is authentic without a look at the store.

Its bearer needs nothing else, as with presigned addresses of a bucket. So addresses are secret, and expire. A job's
address also ends with the job's claim on chain. A shared address can be revoked.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal, cast

PREFIX = "/v1/transfers/"

Use = Literal["put", "get", "in", "out", "link"]
_TOKEN = re.compile(
    r"(put|get|in|out|link)\.([0-9a-f]{32})\.([0-9]{1,19})\.([0-9]{1,12})\.([0-9]{1,12})\.([\w-]{43})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Address:
    """What a bearer may do. `put` and `out` write, the others read.

    `number` is the job of `in` and `out`, and the number of a `link`. `claimed_at` is of the job's claim.
    """

    use: Use
    bundle: str
    until: int
    number: int = 0
    claimed_at: int = 0

    @property
    def writes(self) -> bool:
        return self.use in ("put", "out")

    @property
    def is_for_job(self) -> bool:
        return self.use in ("in", "out")


class Addresses:
    """Makes and reads addresses with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def path(self, address: Address) -> str:
        """Return the path of the address at the services."""
        text = f"{address.use}.{address.bundle}.{address.number}.{address.claimed_at}.{address.until}"
        return f"{PREFIX}{text}.{self._signature(text)}"

    def input_number(self, owner: str, digest: str) -> str:
        """Return the number of an owner's input with this manifest. It is part of the definitions of its jobs.

        Files that are sent again get the same number, so their jobs are found again.
        """
        return hmac.new(self._key, f"input.{owner}.{digest}".encode(), hashlib.sha256).hexdigest()[:32]

    def read(self, token: str) -> Address | None:
        """Return the address of a token, which may have expired; None for a token that was not made here."""
        found = _TOKEN.fullmatch(token)
        text, _, signature = token.rpartition(".")
        if not found or not hmac.compare_digest(self._signature(text), signature):
            return None
        use, bundle, number, claimed_at, until, _ = found.groups()
        return Address(cast(Use, use), bundle, int(until), int(number), int(claimed_at))

    def knows(self, path: str) -> bool:
        """Return whether a request's path is below an authentic address."""
        return path.startswith(PREFIX) and self.read(path.removeprefix(PREFIX).partition("/")[0]) is not None

    def _signature(self, text: str) -> str:
        made = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")
