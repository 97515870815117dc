"""Versions of the services' protocol.

The services say which versions they serve in the header `X-Grid-Protocol` of `GET /v1/health`. A change that a client
of the release before cannot read, or that refuses its requests, makes a new version.
"""

from __future__ import annotations

import re

from deepgrid.errors import ConfigurationError

HEADER = "X-Grid-Protocol"
SPOKEN = 1  # by clients of this release
SERVED = (1,)  # by services of this release


def served_as_header() -> str:
    """Return the value of the header: the versions with commas."""
    return ", ".join(map(str, SERVED))


def check(header: str | None) -> None:
    """Raise ConfigurationError if services with this header do not serve this release's version.

    None is the header of a release before it existed, which served version 1. A malformed header is not refused.
    """
    served = {int(one) for one in re.findall(r"\b[0-9]{1,6}\b", header or "1")}
    if not served or SPOKEN in served:
        return
    versions = " and ".join(map(str, sorted(served)))
    if max(served) > SPOKEN:
        raise ConfigurationError(
            f"This program is older than its grid: it speaks protocol {SPOKEN}, the services {versions}.",
            next_step="Upgrade deepgrid on this machine.",
        )
    raise ConfigurationError(
        f"The grid is older than this program, which speaks protocol {SPOKEN}, the services {versions}.",
        next_step="Ask the grid's operator to upgrade, or install the release that the grid runs.",
    )
