"""Bodies of requests and answers, and their limits. `docs/reference/protocol.md` explains each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, field_validator

from deepgrid.billing.use_samples import MOST_SAMPLES
from deepgrid.lifecycle.definition_hash import MAX_BYTES as MAX_DEFINITION_BYTES

MAX_UPLOAD_BODY_BYTES = 2 * MAX_DEFINITION_BYTES + 1024  # the escapes of a JSON string can double its size
MAX_SMALL_BODY_BYTES = 8 * 1024
MAX_LOG_CHUNK_BYTES = 1024 * 1024
MAX_NOTICE_CHARS = 500
MAX_NOTICES_AT_ONCE = 200
MAX_NOTICES_BODY_BYTES = 512 * 1024  # that many of the longest notices fit, with any characters
MAX_USES_AT_ONCE = 100
MAX_USES_BODY_BYTES = 64 * 1024
MAX_FIGURE = 10**12
MAX_WAIT_S = 25.0

DefinitionHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The delivered part of a log, in bytes.

    `offset` counts the log, `source` the provider's file. `left_out` are bytes of the file that are not in the log.
    `most` is the limit that the service keeps per log.
    """

    offset: int = 0
    source: int = 0
    left_out: int = 0
    most: int = 2**53

    def after(self, data: bytes) -> Self:
        """Return the position after this part of the file."""
        return replace(self, offset=self.offset + len(data), source=self.source + len(data))

    def after_gap(self, line: bytes, gap: int) -> Self:
        """Return the position after a line that replaces `gap` bytes of the file."""
        return replace(self, offset=self.offset + len(line), source=self.source + gap, left_out=self.left_out + gap)


class Message(BaseModel):
    """A body. Validation errors do not repeat its content."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Upload(Message):
    """A definition in canonical form, with the salt of its hash (hex of 32 bytes)."""

    salt: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(repr=False)
    definition: str = Field(repr=False)


class ReleaseRequest(Message):
    """Request for a definition. `public_key` is a fresh secp256k1 key, compressed, in hex."""

    definition_hash: DefinitionHash = Field(alias="location_hash")
    public_key: Annotated[str, StringConstraints(pattern=r"^0[23][0-9a-f]{64}$")]


class Released(Message):
    """ECIES ciphertext (hex) of an `Upload` in JSON, for the key of the request."""

    sealed: str = Field(repr=False)


class Release(Message):
    """One release of a definition: the provider, the job, and the time (unix seconds)."""

    provider: str
    job_id: int
    at: int


class Releases(Message):
    releases: list[Release]


class Revocation(Message):
    """The session key to end, as in the header `X-Grid-Session`."""

    session: Annotated[str, StringConstraints(max_length=1024)]


class NoticeText(Message):
    """A remark on a job's scheduling, on one line. `kind` is a word such as `waiting`, `assigned` or `refused`."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,31}$")]
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NOTICE_CHARS)]

    @field_validator("text")
    @classmethod
    def _one_line(cls, text: str) -> str:
        """Remove control characters and line ends, because customers' terminals show the text."""
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        if not line:
            raise ValueError("says nothing")
        return line


class JobNotice(NoticeText):
    """A remark on the job `job_id`."""

    job_id: Annotated[int, Field(ge=1, lt=2**63)]


class NoticeBatch(Message):
    """Remarks on many jobs, in order."""

    notices: Annotated[list[JobNotice], Field(min_length=1, max_length=MAX_NOTICES_AT_ONCE)]


Figure = Annotated[int, Field(strict=True, ge=0, le=MAX_FIGURE)]


class UseFigures(Message):
    """What a job had used `run_s` seconds after its start; null for what is not known.

    CPU time and bytes are totals. Memory and GPUs are the highest figures since the sample before.
    """

    run_s: Figure
    cpu_s: Figure | None = None
    memory_mb: Figure | None = None
    read_mb: Figure | None = None
    written_mb: Figure | None = None
    gpu_percent: Figure | None = None
    gpu_memory_mb: Figure | None = None


class JobUse(UseFigures):
    """A sample of the claim `claimed_at` of the job `job_id`."""

    job_id: Annotated[int, Field(ge=1, lt=2**63)]
    claimed_at: Figure


class UseBatch(Message):
    """Samples of running jobs, one per job."""

    uses: Annotated[list[JobUse], Field(min_length=1, max_length=MAX_USES_AT_ONCE)]


class UseOverTime(Message):
    """The samples of a job, oldest first, of the claim `claimed_at`."""

    claimed_at: int
    samples: Annotated[list[UseFigures], Field(max_length=MOST_SAMPLES)]


class Notice(NoticeText):
    """A published remark. `author` is the address that signed it, `at` is unix seconds."""

    author: str
    at: int


class Health(Message):
    """The service works and serves this grid. `time` is its clock in unix seconds."""

    status: str
    chain_id: int
    meta_scheduler: str
    time: int


class Notices(Message):
    notices: list[Notice]


class Appended(Message):
    """Length of the log in bytes. The next chunk must begin there.

    The further fields answer a request with `source`: how much of the provider's file the log accounts for, how many
    bytes of it are left out, and how many bytes the service keeps per log.
    """

    next_offset: int
    next_source: int | None = None
    left_out: int | None = None
    max_bytes: int | None = None


class QueueEntry(Message):
    """The place of a job. `position` counts from 1 in a line of `length` jobs; both are null once it is claimed.

    `status` is null if the job is over, or not known yet.
    """

    status: str | None = None
    position: int | None = None
    length: int | None = None


class QueueAnswer(RootModel[dict[str, QueueEntry]]):
    """The answer of the queue oracle: jobs by id, which is 0x and 64 hex digits."""


class Fault(BaseModel):
    """Body of every refusal. The fields of `Appended` are set only for a log chunk at another place."""

    model_config = ConfigDict(extra="ignore")

    error: str
    next_offset: int | None = None
    next_source: int | None = None
    left_out: int | None = None
    max_bytes: int | None = None
