"""Where a job's script gets its input from the grid, and where it sends its output."""

from __future__ import annotations

from dataclasses import dataclass, field

PART_BYTES = 4 * 1024 * 1024  # an output is sent in parts of this size
CHECKSUM_HEADER = "X-Grid-Checksum"  # SHA-256 of a body, in hexadecimal digits


@dataclass(frozen=True, slots=True)
class GridFiles:
    """Addresses that work for this claim of the job only. Without them, the script can be looked at, not run.

    `authorities` are certificates (PEM) of the grid's own authorities, which its nodes do not know.
    """

    input: str = field(default="", repr=False)
    output: str = field(default="", repr=False)
    authorities: str = ""
