"""The side of a worker process that examines what strangers send. It is killed when a request takes too long.

A message is its length in four bytes, and its bytes. The first one, which is empty, says that the process is ready.
"""

from __future__ import annotations

import resource
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO

MEMORY_BYTES = 1024**3


def answer_requests(examine: Callable[[bytes], bytes]) -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    _write(sink, b"")
    while head := source.read(4):
        _write(sink, examine(source.read(struct.unpack(">I", head)[0])))


def _write(sink: BinaryIO, content: bytes) -> None:
    sink.write(struct.pack(">I", len(content)) + content)
    sink.flush()
