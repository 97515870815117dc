"""A real terminal for tests: `dps` runs on a pty, its bytes are recorded, keys are typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

WITHIN_S = 120.0
SIZES = ("COLUMNS", "LINES")  # programs believe these more than their terminal
SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-~])"  # CSI, OSC and other strings, short ones
)


class Terminal:
    """A process on its own pty. `bytes` is everything that it has written.

    Leaving the context ends it.
    """

    def __init__(
        self, argv: Sequence[str], environment: dict[str, str], *, cwd: str, size: tuple[int, int] = (80, 24)
    ) -> None:
        self.bytes = b""
        self._master, slave = pty.openpty()
        self.resize(*size)
        environment = {name: value for name, value in environment.items() if name not in SIZES}
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=cwd, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no other way to its terminal
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WITHIN_S)
        if self._master >= 0:
            os.close(self._master)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def attributes(self) -> object:
        """Return the settings of the line, such as whether it echoes."""
        return termios.tcgetattr(self._master)[:4]

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Close the line, as a lost connection does."""
        os.close(self._master)
        self._master = -1

    def read(self, within_s: float = 0.1) -> bool:
        """Record what is written now. Returns whether there was something."""
        if not select.select([self._master], [], [], within_s)[0]:
            return False
        try:
            self.bytes += os.read(self._master, 65536)
        except OSError:  # the process has ended
            return False
        return True

    @property
    def text(self) -> str:
        """What was written, without sequences, in the order of writing."""
        return SEQUENCE.sub(b"", self.bytes).decode(errors="replace")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Record until the condition is true."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, f"{what} in {self.text[-4000:]}"
            self.read()

    def shows(self, *words: str) -> None:
        """Record until all these words were written after the last call. Also records the rest of that drawing."""
        start = getattr(self, "_read_to", 0)
        self.until(
            lambda: all(word in SEQUENCE.sub(b"", self.bytes[start:]).decode(errors="replace") for word in words),
            f"never wrote {words}",
        )
        while self.read():
            pass
        self._read_to = len(self.bytes)

    def ended(self) -> int:
        """Record until the process has ended. Returns its status."""
        self.until(lambda: self.process.poll() is not None, "does not end")
        while self.read():
            pass
        return self.process.returncode

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)


def dps(*args: str) -> list[str]:
    """Return the command line of `dps`."""
    return [sys.executable, "-m", "deepgrid.cli", *args]
