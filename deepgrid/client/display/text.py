"""Text for a terminal: strangers' text on chain or in a log must not control the terminal. Colours and bold letters in
a job's output are kept, rewritten so that they hide no text. Concealed, blinking and other text becomes usual text. A
colour goes if one could hardly read it on its background. Where one of both is the terminal's own, it may be black or
white.
"""

from __future__ import annotations

import codecs
import io
import re
import time
from functools import lru_cache
from itertools import product
from typing import NamedTuple

LONGEST_LINE = 64 * 1024

COLOUR = re.compile(r"\x1b\[(?P<codes>[0-9;:]{0,64})m")
OFF = "\x1b[0m"
NEAR = 64  # of 255: the most difference of red, green and blue of colours that look alike
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
_FIRST_16 = (
    BLACK, (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), WHITE,
)  # fmt: skip
_STEPS = (0, 95, 135, 175, 215, 255)

Colour = tuple[int, ...]  # red, green and blue, or the number in the terminal's palette; empty for the terminal's own


class Look(NamedTuple):
    """The look of text."""

    bold: bool = False
    text: Colour = ()
    ground: Colour = ()

    @property
    def sequence(self) -> str:
        """The escape sequence that makes plain text look so."""
        codes = ["1"] if self.bold else []
        return f"\x1b[{';'.join([*codes, *_codes(self.text, 30), *_codes(self.ground, 40)])}m"

    def readable(self) -> Look:
        """Return the look without its colours if these would hide the text."""
        if not (self.text or self.ground):
            return self
        texts, grounds = _values(self.text, self.bold), _values(self.ground)
        alike = any(max(abs(a - b) for a, b in zip(*pair, strict=True)) <= NEAR for pair in product(texts, grounds))
        return Look(self.bold) if alike else self


PLAIN = Look()


@lru_cache(1024)
def _between(before: Look, look: Look) -> str:
    """Return the sequence that changes one look into another."""
    if look == before:
        return ""
    return (OFF if before != PLAIN else "") + (look.sequence if look != PLAIN else "")


@lru_cache(1024)
def _after(look: Look, codes: str) -> tuple[Look, Look]:
    """Return the look that a sequence with these codes asks for, and the one that can be read."""
    left = [[int(number or 0) for number in part.split(":")] for part in codes.split(";")]
    while left:
        code, *values = left.pop(0)
        if code in (38, 48):
            if not values:
                count = {5: 2, 2: 4}.get(left[0][0], 1) if left else 0
                values = [one[0] for one in left[:count]]
                del left[:count]
            look = look._replace(text=_colour(values)) if code == 38 else look._replace(ground=_colour(values))
        elif not values:
            look = _with_code(look, code)
    return look, look.readable()


def _with_code(look: Look, code: int) -> Look:
    tens, number = divmod(code, 10)
    if code == 0:
        return PLAIN
    if code in (1, 22):
        return look._replace(bold=code == 1)
    if number > 7 and code not in (39, 49):
        return look
    colour = () if number == 9 else (number + 8,) if tens > 8 else (number,)
    if tens in (3, 9):
        return look._replace(text=colour)
    return look._replace(ground=colour) if tens in (4, 10) else look


def _colour(values: list[int]) -> Colour:
    """Return the colour after 38 or 48: `5;n`, `2;r;g;b`, or with colons and a colour space `2::r:g:b`."""
    colour = values[1:2] if values[:1] == [5] else values[2:5] if len(values) > 4 else values[1:4]
    is_whole = len(colour) == {5: 1, 2: 3}.get(values[0] if values else 0)
    return tuple(colour) if is_whole and max(colour) < 256 else ()


def _codes(colour: Colour, base: int) -> list[str]:
    if len(colour) == 1 and colour[0] < 16:
        return [str(base + colour[0] + (52 if colour[0] > 7 else 0))]
    kind = {0: [], 1: [base + 8, 5], 3: [base + 8, 2]}[len(colour)]
    return [str(number) for number in (*kind, *colour)]


def _values(colour: Colour, bold: bool = False) -> list[Colour]:
    """Red, green and blue that the terminal may show. Some show bold letters in the bright colour."""
    if not colour:
        return [BLACK, WHITE]
    if len(colour) == 3:
        return [colour]
    number = colour[0]
    if number < 16:
        return [_FIRST_16[number], *([_FIRST_16[number + 8]] if bold and number < 8 else [])]
    if number > 231:
        return [(8 + 10 * (number - 232),) * 3]
    red_green, blue = divmod(number - 16, 6)
    return [(_STEPS[red_green // 6], _STEPS[red_green % 6], _STEPS[blue])]


# Colours are rewritten. All other sequences after ESC move the cursor, set titles or talk to the terminal.
_ESCAPE = re.compile(
    rf"""{COLOUR.pattern}
    | \x1b\[[0-?]*[ -/]*[@-~]                     # CSI
    | \x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?    # OSC, DCS, SOS, PM, APC up to BEL or ST
    | \x1b[ -/]*[0-~]?
    | [\x00-\x08\x0b-\x1f\x7f-\x9f]
    | [\u2028\u2029\u202a-\u202e\u2066-\u2069]    # line ends, and other directions for what follows""",
    re.VERBOSE,
)


def clock(unix_s: float) -> str:
    """Local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(unix_s))


def moment(unix_s: int) -> str:
    """Local date and time; a dash if there is no time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_s)) if unix_s else "-"


def moment_utc(unix_s: int) -> str:
    """Return date and time in UTC, with its name."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s))


def plural(count: int, noun: str) -> str:
    """`1 minute`, `2 minutes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class LogLines:
    """A job's output as lines: CR becomes LF, escape sequences and changes of direction go, colours stay.

    Colours hide no text, and end with their line.
    Chunks may be cut anywhere, even inside a character or an escape sequence.
    """

    def __init__(self) -> None:
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        self._rest = ""

    def feed(self, chunk: bytes, final: bool = False) -> list[str]:
        """Return the lines that are complete now; with `final` also the last one without an end."""
        return [line for line, _ in self.feed_parts(chunk, final)]

    def feed_parts(self, chunk: bytes, final: bool = False) -> list[tuple[str, bool]]:
        """Return the same, each with whether the next one continues it: a long line comes in parts."""
        *lines, self._rest = (self._rest + self._decoder.decode(chunk, final=final)).split("\n")
        found = [part for line in lines for part in _in_parts(line, has_end=True)]
        *parts, (self._rest, _) = _in_parts(self._rest, has_end=False)
        found += parts
        if final and self._rest:
            found.append((self._rest, False))
            self._rest = ""
        return [(_clean(line), continues) for line, continues in found]


def _in_parts(line: str, *, has_end: bool) -> list[tuple[str, bool]]:
    """Return a line in parts of the greatest length, each with whether the next one continues it."""
    starts = range(0, max(len(line), 1), LONGEST_LINE)
    return [(line[at : at + LONGEST_LINE], not has_end or at + LONGEST_LINE < len(line)) for at in starts]


def _clean(line: str) -> str:
    """Return the line with its colours written again, which end with it."""
    if line.isprintable():
        return line
    asked = shown = PLAIN

    def rewritten(match: re.Match[str]) -> str:
        nonlocal asked, shown
        if match["codes"] is None:
            return ""
        before, (asked, shown) = shown, _after(asked, match["codes"])
        return _between(before, shown)

    return _ESCAPE.sub(rewritten, line) + _between(shown, PLAIN)
