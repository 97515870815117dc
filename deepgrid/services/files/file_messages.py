"""Bodies of requests and answers about files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from deepgrid.services.messages import Message

LONGEST_LINK_S = 366 * 24 * 3600

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Announcement(Message):
    """Files that a customer wants to send: the SHA-256 of their manifest, their size in bytes, and their number."""

    digest: Digest
    size: int = Field(ge=0, lt=2**53)
    files: int = Field(ge=0, lt=2**31)


class Announced(Message):
    """Where to send them. If `finished`, all of them are there from before."""

    id: str
    address: str = Field(repr=False)
    finished: bool


class JobFiles(Message):
    """The output of a job: where it can be read until `until` (unix seconds), and when the grid deletes it."""

    address: str = Field(repr=False)
    until: int
    size: int
    files: int
    finished_at: int
    kept_until: int


class Transfers(Message):
    """The addresses of a job's script; None for what its definition does not ask for."""

    input: str | None = Field(default=None, repr=False)
    output: str | None = Field(default=None, repr=False)


class LinkWish(Message):
    """A wish for a link to the files of a job that is good for `for_s` seconds."""

    for_s: int = Field(ge=60, le=LONGEST_LINK_S)


class Link(Message):
    """A link that its bearer can read by. The address is known to its maker only."""

    id: int
    made_at: int
    until: int
    revoked_at: int | None = None
    address: str | None = Field(default=None, repr=False)


class Links(Message):
    links: list[Link]


class Usage(Message):
    """How much of a customer's quota is used, in bytes, and the limits of the operator."""

    used: int
    quota: int
    bundle: int
    file: int
    files: int
    keep_s: int


class Progress(Message):
    """The state of an upload: its size in bytes, how many parts are missing, and the first of these."""

    size: int
    parts: int
    left: int
    missing: list[int]
    finished: bool
