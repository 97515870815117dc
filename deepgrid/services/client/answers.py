"""Parses answers of the services into messages and errors. The services are not trusted; answers are verified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import httpx
from pydantic import ValidationError

from deepgrid.errors import AccessDenied, GridError, InputError, NotFound, ServiceError
from deepgrid.lifecycle.definition_hash import hash_definition
from deepgrid.services import messages
from deepgrid.services.messages import LogPosition, Message

if TYPE_CHECKING:
    from deepgrid.workflow import Definition

LONGEST_PAUSE_S = 30.0
LATER = "Try again later."
FINAL = frozenset({401, 403, 404, 409, 422})  # what only the services can mean

M = TypeVar("M", bound=Message)


class SlowAnswer(ServiceError):
    """The service took the request and has not answered in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: httpx.Headers
    content: bytes

    def read(self) -> bytes:
        """Return the content. Raises the error of a refusal."""
        if 200 <= self.status < 300:
            return self.content
        raise error_of(self)


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Output of the claim made at `claimed_at`, from `offset` up to `next_offset`. If `final`, nothing will follow.

    `left_out` counts the bytes of the output that are not in the log, `pending` those that its provider still has. If
    `closed`, the provider said that the log ends here. `times` are unix seconds, and the bytes stored in each.
    """

    data: bytes = field(repr=False)
    next_offset: int
    final: bool
    claimed_at: int
    offset: int = 0
    left_out: int = 0
    pending: int = 0
    closed: bool = False
    times: tuple[tuple[int, int], ...] = ()

    def parts(self) -> Iterator[tuple[bytes, int | None]]:
        """Yield the output in parts, each with the unix time (s) at which the service stored it, if it says so."""
        start = 0
        for at_s, length in self.times:
            yield self.data[start : start + length], at_s
            start += length
        if start < len(self.data) or not self.data:
            yield self.data[start:], None


def open_definition(secret: bytes, sealed: str, definition_hash: str) -> Definition:
    """Decrypt a released definition. Its hash proves that it is the definition that the job names."""
    import ecies  # here, as the next: they take a fifth of a second to load, and most clients open no definition

    from deepgrid.workflow import from_canonical

    try:
        upload = messages.Upload.model_validate_json(ecies.decrypt(secret, bytes.fromhex(sealed)))
    except Exception as error:  # the library raises anything from ValueError to OpenSSL errors
        raise tampered_error(f"cannot be opened ({type(error).__name__})") from None
    content = upload.definition.encode()
    if hash_definition(bytes.fromhex(upload.salt), content) != definition_hash:
        raise tampered_error("is not the one that the job names")
    return from_canonical(content)


def tampered_error(what: str) -> AccessDenied:
    return AccessDenied(
        f"The definition that the service released {what}.", next_step="Tell the operator: the service may be breached."
    )


def nonsense() -> ServiceError:
    return ServiceError("The grid's services gave an answer that does not follow the protocol.")


def parse(kind: type[M], content: bytes) -> M:
    try:
        return kind.model_validate_json(content)
    except ValidationError:
        raise nonsense() from None


def asked_pause_s(answer: Answer) -> float | None:
    """Return the seconds that the service asks to wait before a retry of the same request; None without such a wish."""
    asked = answer.headers.get("Retry-After", "")
    if answer.status not in (429, 503) or not re.fullmatch("[0-9]{1,6}", asked):
        return None
    return min(max(float(asked), 0.5), LONGEST_PAUSE_S)


def refusal_of(answer: Answer) -> messages.Fault | None:
    """Return what the services said; None if the answer is another server's, such as a proxy's before them."""
    try:
        return messages.Fault.model_validate_json(answer.content)
    except ValidationError:
        return None


def error_of(answer: Answer) -> GridError:
    """Return the refusal as an error. It is permanent if a retry cannot help, and only the services can say so."""
    fault = refusal_of(answer)
    if fault is None and answer.status in FINAL:
        words = f"Another server answered in place of the grid's services (status {answer.status})."
        return ServiceError(words, next_step=LATER)
    sentence = f"The grid's services refused: {fault.error[:500] if fault else f'status {answer.status}'}."
    match answer.status:
        case 401 | 403:
            return AccessDenied(sentence, next_step="Use the key of the party that may do this.")
        case 404:
            return NotFound(sentence, next_step="Check the number of the job.")
        case 409 | 413 | 422:
            return InputError(sentence, next_step="Correct it.")
        case 408 | 425 | 429:
            return _busy(sentence, answer)
        case 503:
            return _busy(sentence.replace("refused", "do not serve now", 1), answer)
        case status if status >= 500:
            return ServiceError(sentence.replace("refused", "failed", 1), next_step=LATER)
    return ServiceError(sentence, transient=False, next_step="Check that this version fits the grid's services.")


def _busy(sentence: str, answer: Answer) -> ServiceError:
    error = ServiceError(sentence, next_step=LATER)
    error.asked_pause_s = asked_pause_s(answer)
    return error


def log_position(answer: Answer) -> LogPosition:
    """Return the end of a log by the answer to a chunk of output, even if the answer refuses the chunk's place."""
    is_elsewhere = answer.status == 409
    found = refusal_of(answer) if is_elsewhere else parse(messages.Appended, answer.read())
    if found is None or found.next_offset is None:
        raise error_of(answer)
    source = found.next_offset if found.next_source is None else found.next_source  # None: of an earlier release
    return LogPosition(found.next_offset, source, found.left_out or 0, found.max_bytes or LogPosition().most)


def _times(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (part.split(":") for part in text.split(",") if part)
    return tuple((int(at_s), max(0, int(length))) for at_s, length in pairs)


def log_chunk(answer: Answer) -> LogChunk:
    """Return a piece of a log, with the position in the answer's headers."""
    data, headers = answer.read(), answer.headers
    try:
        return LogChunk(
            data,
            int(headers["X-Next-Offset"]),
            headers["X-Final"] == "true",
            int(headers["X-Claimed-At"]),
            int(headers["X-Offset"]),
            int(headers.get("X-Left-Out", "0")),
            int(headers.get("X-Pending", "0")),
            headers.get("X-Closed", headers["X-Final"]) == "true",  # an earlier release does not send it
            _times(headers.get("X-Times", "")),  # nor this
        )
    except (KeyError, ValueError):
        raise nonsense() from None
