"""Keeps a job from using the customer's terminal for more than text, colours and the cursor.

Titles, the clipboard, notifications, downloads and key definitions are control strings (OSC, DCS, APC, PM, SOS).
They are dropped. The other sequences move the cursor, set colours or switch modes, as full-screen programs need it.
"""

from __future__ import annotations

ESCAPE, BELL, CANCEL, SUBSTITUTE = 0x1B, 0x07, 0x18, 0x1A
STRING_STARTS = b"]P_^X"  # after ESC
C1_STARTS = b"\x9d\x90\x9f\x9e\x98"  # the same as one character, which UTF-8 writes as C2 and this byte
C1_LEAD = 0xC2


class TerminalFilter:
    """Filters one stream. Sequences may be cut anywhere between two calls of `feed`."""

    def __init__(self) -> None:
        self._in_string = False
        self._held = 0  # a byte that may begin something: ESC, or the lead of a C1 character

    def feed(self, data: bytes) -> bytes:
        """Return what of `data` the terminal may get."""
        if not self._in_string and not self._held and ESCAPE not in data and C1_LEAD not in data:
            return data
        shown = bytearray()
        for byte in data:
            if self._in_string:
                self._skip(byte)
            elif self._held:
                held, self._held = self._held, 0
                starts = STRING_STARTS if held == ESCAPE else C1_STARTS
                if byte in starts:
                    self._in_string = True
                elif byte in (ESCAPE, C1_LEAD):
                    shown.append(held)
                    self._held = byte
                else:
                    shown += bytes((held, byte))
            elif byte in (ESCAPE, C1_LEAD):
                self._held = byte
            else:
                shown.append(byte)
        return bytes(shown)

    def _skip(self, byte: int) -> None:
        """Skip a byte of a control string. BEL, ST, CAN and SUB end it."""
        ended = byte in (BELL, CANCEL, SUBSTITUTE)
        ended = ended or (self._held == ESCAPE and byte == ord("\\")) or (self._held == C1_LEAD and byte == 0x9C)
        self._held = byte if not ended and byte in (ESCAPE, C1_LEAD) else 0
        self._in_string = not ended
