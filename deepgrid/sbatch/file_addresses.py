"""Where a job's script gets its input from the grid, and where it sends its output."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

PART_BYTES = 4 * 1024 * 1024  # files are sent and stored in parts of this size
CHECKSUM_HEADER = "X-Grid-Checksum"  # CRC-32 or SHA-256 of a body, in 8 or 64 hexadecimal digits
CHECKSUM_DIGITS = 8
MOST_FOLDERS = 100  # of one file, each in the one before
LONGEST_PATH = 3000  # bytes


def part_count(size: int) -> int:
    """Return how many parts a bundle of this size has."""
    return -(-size // PART_BYTES)


def part_size(size: int, index: int) -> int:
    """Return the size of one part of a bundle of this size."""
    return min(PART_BYTES, size - index * PART_BYTES)


def checksum_of(body: bytes | bytearray | memoryview) -> str:
    """Return the CRC-32 of a body. It detects transmission errors. The manifest has a SHA-256 for each file."""
    return f"{zlib.crc32(body):0{CHECKSUM_DIGITS}x}"


@dataclass(frozen=True, slots=True)
class GridFiles:
    """Addresses that work for this claim of the job only. Without them, the script can be looked at, not run.

    `authorities` are certificates (PEM) of the grid's own authorities, which its nodes do not know. The keys are of
    private files, in hexadecimal digits; `own_key` is the key that the customer encrypted, which is not secret.
    """

    input: str = field(default="", repr=False)
    output: str = field(default="", repr=False)
    authorities: str = ""
    input_key: str = field(default="", repr=False)
    output_key: str = field(default="", repr=False)
    own_key: str = ""
