"""Decides which part of a job's output is delivered next, and which part is left out.

The first three quarters of a log are the head of the output, the rest is its tail. The tail is known when the job is
over. Until then, a log with a full head waits. Lines in the log say what is left out. They are for people: a job can
print the same lines. The counts that the log service keeps are for programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.services.messages import LogPosition

LINES_BYTES = 1024  # kept free for the lines of the shipper
LINE_BYTES = 128  # of one line at most


@dataclass(frozen=True, slots=True)
class Portion:
    """The next part of an output: `ship` bytes at most, or a gap of `leave_out` bytes."""

    ship: int = 0
    leave_out: int = 0


def next_portion(at: LogPosition, size: int, most: int, *, ended: bool) -> Portion:
    """Return the next part of an output of `size` bytes, for a log of at most `most` bytes."""
    usable = usable_bytes(most)
    rest, room = max(0, size - at.source), max(0, usable - at.offset)
    head = head_bytes(most) - at.offset
    if ended and rest <= room:
        return Portion(ship=rest)
    if head > 0 and not at.left_out:
        return Portion(ship=min(head, rest))
    if not ended:
        return Portion()
    return Portion(leave_out=rest - max(0, room - LINE_BYTES))


def usable_bytes(most: int) -> int:
    """Return the bytes of a log that are for output."""
    return most - min(LINES_BYTES, most // 4)


def head_bytes(most: int) -> int:
    """Return the bytes of a log that are for the head of the output."""
    return usable_bytes(most) * 3 // 4


def gap_line(count: int, *, new_line: bool) -> bytes:
    """Return the line that replaces `count` bytes of output. With `new_line`, it ends an unfinished line first."""
    return _line(f"{count:,} bytes of output are left out here", new_line)


def wait_line(*, new_line: bool) -> bytes:
    """Return the line that says why no output follows for now."""
    return _line("the head of the log is full; the end of the output follows when the job is over", new_line)


def note_line(text: str, *, new_line: bool) -> bytes:
    """Return a line of the supervisor, such as the one before the bought time ends."""
    return _line(text, new_line)


def _line(text: str, new_line: bool) -> bytes:
    return f"{chr(10) * new_line}[deepgrid: {text}]\n".encode()
