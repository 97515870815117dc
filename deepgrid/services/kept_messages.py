"""Bodies about what is kept of a job for its customer, and their limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from deepgrid.services.messages import DefinitionHash, Message

MOST_TAGS = 16
MOST_NOTE_CHARS = 500
MOST_MARKS_AT_ONCE = 200
MOST_PARAMETER_BYTES = 4096  # of one job
MAX_MARKS_BODY_BYTES = 1024 * 1024

TagName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
TagValue = Annotated[str, StringConstraints(max_length=80)]
SweepId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class SweepPlace(Message):
    """The place of a job in a sweep. `at` counts from 1; `of` is the number of jobs. Packed jobs have several sets."""

    id: SweepId
    name: Annotated[str, StringConstraints(max_length=80)] = Field(repr=False)
    at: Annotated[int, Field(ge=1, le=100_000)]
    of: Annotated[int, Field(ge=1, le=100_000)]
    parameters: Annotated[list[dict[str, str]], Field(max_length=1000)] = Field(default=[], repr=False)

    @field_validator("parameters")
    @classmethod
    def _bounded(cls, parameters: list[dict[str, str]]) -> list[dict[str, str]]:
        size = sum(len(name.encode()) + len(value.encode()) for one in parameters for name, value in one.items())
        if size > MOST_PARAMETER_BYTES:
            raise ValueError(f"the parameters have more than {MOST_PARAMETER_BYTES} bytes")
        return parameters


class Mark(Message):
    """What a customer notes about a job: tags, a note, and its place in a sweep."""

    tags: Annotated[dict[TagName, TagValue], Field(max_length=MOST_TAGS)] = Field(default={}, repr=False)
    note: Annotated[str, StringConstraints(max_length=MOST_NOTE_CHARS)] = Field(default="", repr=False)
    sweep: SweepPlace | None = None


class JobMark(Mark):
    """The mark of the job with this definition."""

    definition_hash: DefinitionHash


class MarkBatch(Message):
    """Marks of several jobs, which replace earlier ones."""

    marks: Annotated[list[JobMark], Field(min_length=1, max_length=MOST_MARKS_AT_ONCE)]


class MarkPage(Message):
    """Marks of a customer's jobs. `after` is the start of the next page; null at the end."""

    marks: list[JobMark]
    after: DefinitionHash | None = None


class KeptFile(Message):
    """The definition of a job in canonical form with `***` in place of secrets, their places, and the job's mark."""

    definition: str = Field(repr=False)
    masked: list[str]
    mark: Mark = Mark()
