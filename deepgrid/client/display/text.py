"""Text for a terminal: nothing that a stranger wrote on chain may steer it."""

from __future__ import annotations

import codecs
import io
import re
import time

from deepgrid.client.display.colours import COLOUR, Repainter
from deepgrid.plain_text import plain

# Colours are written anew. Whatever else follows ESC moves the cursor, sets titles or talks to the terminal.
_ESCAPE = re.compile(
    rf"""{COLOUR.pattern}
    | \x1b\[[0-?]*[ -/]*[@-~]                     # CSI
    | \x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?    # OSC, DCS, SOS, PM, APC up to BEL or ST
    | \x1b[ -/]*[0-~]?
    | [\x00-\x08\x0b-\x1f\x7f-\x9f]
    | [\u2028\u2029\u202a-\u202e\u2066-\u2069]    # line ends, and other directions for what follows""",
    re.VERBOSE,
)
LONGEST_LINE = 64 * 1024


def printable(text: str) -> str:
    """`text` on one line, without characters that steer a terminal."""
    return plain(text)


def clock(unix_s: float) -> str:
    """Local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(unix_s))


def moment(unix_s: int) -> str:
    """Local date and time; a dash for a time that is not there."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_s)) if unix_s else "-"


def moment_utc(unix_s: int) -> str:
    """Date and time in UTC, with its name."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s))


def plural(count: int, noun: str) -> str:
    """`1 minute`, `2 minutes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class LogLines:
    """A job's output as lines: CR becomes LF, escape sequences and changes of direction go, colours stay.

    Colours hide no text, and end with their line.
    Chunks may be cut anywhere, also inside a character or an escape sequence.
    """

    def __init__(self) -> None:
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        self._rest = ""

    def feed(self, chunk: bytes, final: bool = False) -> list[str]:
        """Lines that are complete now; with `final` also the last one without an end."""
        *lines, self._rest = (self._rest + self._decoder.decode(chunk, final=final)).split("\n")
        while len(self._rest) > LONGEST_LINE:
            lines.append(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]
        if final and self._rest:
            lines.append(self._rest)
            self._rest = ""
        return [_cleaned(line) for line in lines]


def _cleaned(line: str) -> str:
    if line.isprintable():
        return line
    colours = Repainter()
    kept = _ESCAPE.sub(lambda match: "" if match["codes"] is None else colours.change(match["codes"]), line)
    return kept + colours.end()
