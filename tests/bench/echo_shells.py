"""Shells that echo single bytes, for `./run bench sessions`: their delays, and OpenSSH's."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from deepgrid.slurm.ssh.login_settings import LoginSettings

SHELLS, PERIOD_S, MEASURED_S = 100, 0.05, 15.0
READY = b"ready"
ECHO = f"stty raw -echo && printf {READY.decode()} && exec cat"
WITHIN_S = 300.0
OPENING_AT_ONCE = 8  # of a customer's shells, and of OpenSSH's: sshd drops more than ten


@dataclass
class Shell:
    """A terminal in the cluster: how to type, and the delays of its echoes in seconds."""

    write: Callable[[bytes], Awaitable[None]]
    read: Callable[[], Awaitable[bytes]]
    waiting: deque[float] = field(default_factory=deque)
    delays: list[float] = field(default_factory=list)

    async def ready(self) -> None:
        """Wait until its program runs."""
        shown = b""
        while not shown.endswith(READY):
            piece = await self.read()
            assert piece, f"a shell ended: {shown!r}"
            shown += piece

    async def type(self, start: float, until: float) -> None:
        """Type a byte each 50 ms."""
        number = 0
        while (at := start + number * PERIOD_S) < until:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            self.waiting.append(time.monotonic())
            await self.write(b"x")
            number += 1

    async def listen(self, count: int) -> None:
        """Note the delays of this many bytes."""
        while count:
            piece = await self.read()
            assert piece, "a shell ended"
            now = time.monotonic()
            self.delays += [now - self.waiting.popleft() for _ in piece]
            count -= len(piece)


async def echo(shells: Sequence[Shell]) -> None:
    """Type into all shells for MEASURED_S, evenly spread over the period."""
    began, count = time.monotonic() + 0.5, int(MEASURED_S / PERIOD_S)
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
        for number, shell in enumerate(shells):
            start = began + PERIOD_S * number / len(shells)
            group.create_task(shell.type(start, start + (count - 0.5) * PERIOD_S))
            group.create_task(shell.listen(count))


@asynccontextmanager
async def by_openssh(login: LoginSettings) -> AsyncIterator[list[Shell]]:
    """Yield the shells of that many `ssh` processes."""
    options = {
        "Port": login.port, "IdentityFile": login.key_file, "UserKnownHostsFile": login.known_hosts_file,
        "BatchMode": "yes", "LogLevel": "ERROR",
    }  # fmt: skip
    argv = ["ssh", "-F", "none", "-tt", *(f"-o{name}={value}" for name, value in options.items())]
    processes: list[asyncio.subprocess.Process] = []
    places = asyncio.Semaphore(OPENING_AT_ONCE)

    async def start() -> Shell:
        async with places:
            process = await asyncio.create_subprocess_exec(
                *argv, f"{login.user}@{login.host}", ECHO, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            processes.append(process)
            assert process.stdin is not None
            assert process.stdout is not None
            keyboard, screen = process.stdin, process.stdout

            async def write(data: bytes) -> None:
                keyboard.write(data)

            shell = Shell(write, lambda: screen.read(4096))
            await shell.ready()
            return shell

    try:
        async with asyncio.timeout(WITHIN_S):
            yield await asyncio.gather(*(start() for _ in range(SHELLS)))
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()
