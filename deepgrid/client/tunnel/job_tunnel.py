"""The customer's side of a tunnel into a running job, and its streams."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Self

from pydantic import ValidationError

from deepgrid.errors import AccessDenied, GridError, InputError, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import plain
from deepgrid.services.client import ServicesClient
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.signing.signatures import BadRequestSignature
from deepgrid.services.tunnels import tunnel_frames as frames
from deepgrid.services.tunnels.secure_channel import OpeningTunnel, SealedChannel, TunnelAnswer, TunnelBroken
from deepgrid.services.tunnels.tunnel_frames import (
    FIRST_WINDOW,
    GRANT,
    MOST_CONTENT,
    WITH_DATA,
    BrokenFrame,
    Kind,
    StreamEnd,
    StreamRequest,
)
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket

ANSWER_WITHIN_S = 120.0  # Slurm may take long to start a step
ASK_AGAIN_S = 1.0
OPEN_WITHIN_S = 30.0  # the supervisor may just have restarted

Piece = tuple[Kind, bytes]


class SessionLost(ServiceError):
    """The session ended before its command did. Whether the command still runs is not known."""


class JobStream:
    """A command, a terminal or a connection in the job."""

    def __init__(self, tunnel: JobTunnel, number: int) -> None:
        self._tunnel, self.number = tunnel, number
        self._pieces: deque[Piece] = deque()
        self._changed = asyncio.Event()
        self._arrived = 0  # bytes that wait here or were not granted again
        self._taken = 0  # bytes since the last WINDOW
        self._credit = FIRST_WINDOW
        self._credited = asyncio.Event()
        self._end: StreamEnd | GridError | None = None
        self._ended_input = False

    async def read(self) -> Piece | None:
        """Return the next output with its kind, DATA or ERRORS, or EOF of a connection; None once it has ended.

        Raises SessionLost if the session broke.
        """
        while not self._pieces:
            if isinstance(self._end, GridError):
                raise self._end
            if self._end is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        piece = self._pieces.popleft()
        await self._grant(len(piece[1]))
        return piece

    async def write(self, data: bytes) -> None:
        """Send input. Waits while the job does not take it. Input for a stream that has ended is dropped."""
        for start in range(0, len(data), MOST_CONTENT):
            piece = data[start : start + MOST_CONTENT]
            while self._credit < len(piece) and self._end is None:
                self._credited.clear()
                await self._credited.wait()
            if self._end is not None:
                return
            self._credit -= len(piece)
            await self._tunnel.send(Kind.DATA, self.number, piece)

    async def end_input(self) -> None:
        """Say that no more input follows."""
        if self._end is None and not self._ended_input:
            self._ended_input = True
            await self._tunnel.send(Kind.EOF, self.number)

    async def resize(self, rows: int, columns: int) -> None:
        """Say how large the terminal is now."""
        if self._end is None:
            await self._tunnel.send(Kind.RESIZE, self.number, frames.pack_size(rows, columns))

    async def close(self) -> None:
        """End the command or the connection, if it has not ended."""
        if self._end is None:
            self.finish(StreamEnd())
            with suppress(GridError):
                await self._tunnel.send(Kind.CLOSE, self.number)

    @property
    def end(self) -> StreamEnd:
        """How it ended, after `read` returned None."""
        assert isinstance(self._end, StreamEnd)
        return self._end

    async def _grant(self, count: int) -> None:
        self._arrived -= count
        self._taken += count
        if self._taken >= GRANT and self._end is None:
            taken, self._taken = self._taken, 0
            with suppress(GridError):
                await self._tunnel.send(Kind.WINDOW, self.number, frames.pack_count(taken))

    def take(self, kind: Kind, content: bytes) -> None:
        """Take a frame of the job. Raises BrokenFrame."""
        if kind in WITH_DATA:
            self._arrived += len(content)
            if self._arrived + self._taken > FIRST_WINDOW:
                raise BrokenFrame("more data than the window allows")
            self._pieces.append((kind, content))
        elif kind is Kind.EOF:
            self._pieces.append((kind, b""))
        elif kind is Kind.WINDOW:
            self._credit += frames.count_in(content)
            self._credited.set()
        elif kind is Kind.EXIT:
            self.finish(frames.end_in(content))
        self._changed.set()

    def finish(self, end: StreamEnd | GridError) -> None:
        """Note how it ended."""
        if self._end is None:
            self._end = end
        self._changed.set()
        self._credited.set()


class JobTunnel:
    """An open tunnel. Close it by `async with`."""

    def __init__(self, client: TunnelsClient, socket: TunnelSocket, channel: SealedChannel) -> None:
        self._client, self._socket, self._channel = client, socket, channel
        self._streams: dict[int, JobStream] = {}
        self._last = 0
        self._reader = asyncio.create_task(self._read())
        self._lost: GridError | None = None

    @classmethod
    async def open(cls, services: ServicesClient, job: Job, authorities: str | None) -> Self:
        """Open a tunnel into a running job of this account.

        Raises InputError if the job does not run, AccessDenied if it is another customer's, ServiceError if its
        cluster takes no sessions.
        """
        if job.status is not JobStatus.RUNNING:
            raise InputError(f"Job {job.id} is {job.status.words}: only a running job has sessions.")
        client = TunnelsClient(services, authorities)
        try:
            opening, socket = await _open_tunnel(client, job)
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    first = await socket.receive()
                answer = TunnelAnswer.model_validate_json(first)
                if answer.refused:
                    raise ServiceError(f"The job's cluster refuses the session: {_sentence(answer.refused)}")
                channel = opening.channel(answer)
            except (TimeoutError, ValidationError):
                raise ServiceError("The job's cluster does not answer.", next_step="Try it again.") from None
            except BadRequestSignature as fault:
                raise AccessDenied(
                    f"Another party than the job's cluster answered: {fault}.", next_step="Tell the grid's operator."
                ) from None
        except BaseException:
            await client.close()
            raise
        return cls(client, socket, channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all streams and the tunnel."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._break(SessionLost("The session was closed."))
        await self._socket.close()
        await self._client.close()

    async def until_lost(self) -> None:
        """Wait for the end of the tunnel. Raises SessionLost, which says why."""
        await asyncio.wait({self._reader})
        raise self._lost or SessionLost("The session was closed.")

    async def stream(self, request: StreamRequest) -> JobStream:
        """Start a command, a terminal or a connection."""
        if self._lost is not None:
            raise self._lost
        self._last += 1
        stream = self._streams[self._last] = JobStream(self, self._last)
        await self.send(Kind.OPEN, stream.number, request.model_dump_json().encode())
        return stream

    async def send(self, kind: Kind, number: int, content: bytes = b"") -> None:
        """Send a frame. Raises SessionLost."""
        try:
            await self._socket.send(self._channel.seal(frames.pack(kind, number, content)))
        except ConnectionError:
            raise self._lost or SessionLost("The session broke.") from None

    async def _read(self) -> None:
        why = "The session broke: the grid's services or the cluster's supervisor do not answer any more."
        try:
            while sealed := await self._socket.receive():
                kind, number, content = frames.unpack(self._channel.open(sealed))
                if kind is Kind.END:
                    why = f"The session ended: {_sentence(content.decode(errors='replace'))}"
                    break
                if (stream := self._streams.get(number)) is not None:
                    stream.take(kind, content)
                    if kind is Kind.EXIT:
                        del self._streams[number]
        except (TunnelBroken, BrokenFrame) as fault:
            why = f"The session broke: {fault}."
        except ConnectionError:
            pass
        self._break(SessionLost(why))

    def _break(self, error: GridError) -> None:
        self._lost = self._lost or error
        for stream in self._streams.values():
            stream.finish(self._lost)
        self._streams.clear()


async def _open_tunnel(client: TunnelsClient, job: Job) -> tuple[OpeningTunnel, TunnelSocket]:
    """Open the tunnel. Retries while no supervisor asks: it may just have restarted."""
    deadline = asyncio.get_running_loop().time() + OPEN_WITHIN_S
    while True:
        try:
            return await client.open(job)
        except AccessDenied:
            raise
        except ServiceError as error:
            if not error.transient or asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(ASK_AGAIN_S)


def _sentence(text: str) -> str:
    return plain(" ".join(text.split()))[:500].rstrip(".") + "."
