"""A port of a running job on one's own loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from deepgrid.errors import GridError, InputError

if TYPE_CHECKING:
    from deepgrid.client.tunnel.job_tunnel import JobStream, JobTunnel

LOOPBACK = "127.0.0.1"
PIECE_BYTES = 16384
SILENT_S = 5.0  # a program that neither answers nor hangs up within this time listens
ASK_AGAIN_S = 0.5


class AsyncPortForward:
    """A port of the job's first node, which programs on this machine reach at `url`. Close it at the end."""

    def __init__(self, tunnel: JobTunnel, job_port: int, say: Callable[[str], None] | None = None) -> None:
        self._job_port = job_port
        self._port = 0
        self._tunnel = tunnel
        self._say = say
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Address of the forwarded page."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def port(self) -> int:
        """The port on this machine."""
        return self._port

    @property
    def job_port(self) -> int:
        """The port in the job."""
        return self._job_port

    async def close(self) -> None:
        """End the forward and its connections."""
        if self._server is not None:
            self._server.close()
        for task in self._lines:
            task.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        await self._tunnel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Return never; raises when the session ends, for example because the job is over.

        Raises:
            ServiceError: The session ended.
        """
        await self._tunnel.until_lost()

    async def _listen(self, port: int) -> Self:
        try:
            self._server = await asyncio.start_server(self._accept, LOOPBACK, port)
        except OSError as error:
            raise InputError(
                f"This machine cannot listen at port {port}: {error.strerror}.", next_step="Choose another port."
            ) from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from deepgrid.services.tunnels.tunnel_frames import Kind, StreamRequest  # here: a job is imported without it

        sending: asyncio.Task[None] | None = None
        stream: JobStream | None = None
        try:
            stream = await self._tunnel.stream(StreamRequest(kind="forward", port=self.job_port))
            sending = asyncio.create_task(_send(reader, stream))
            while (piece := await stream.read()) is not None:
                if piece[0] is Kind.EOF:
                    writer.write_eof()
                else:
                    writer.write(piece[1])
                    await writer.drain()
            if stream.end.error and self._say is not None:
                self._say(stream.end.error)
        except (GridError, OSError):
            pass
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            if stream is not None:
                await stream.close()
            writer.close()


async def listening(
    tunnel: JobTunnel, job_port: int, local_port: int = 0, say: Callable[[str], None] | None = None
) -> AsyncPortForward:
    """Return a forward through this tunnel, which it closes at its end. Raises InputError if `local_port` is taken."""
    return await AsyncPortForward(tunnel, job_port, say)._listen(local_port)


async def until_answered(tunnel: JobTunnel, job_port: int) -> None:
    """Wait until a program listens at this port in the job. Raises ServiceError when the session ends."""
    while not await _answers(tunnel, job_port):  # noqa: ASYNC110 - the job tells nobody that it listens
        await asyncio.sleep(ASK_AGAIN_S)


async def _answers(tunnel: JobTunnel, job_port: int) -> bool:
    """Return whether the port accepts a connection. It sends nothing and ends the connection."""
    from deepgrid.services.tunnels.tunnel_frames import StreamRequest  # here: a job is imported without it

    stream = await tunnel.stream(StreamRequest(kind="forward", port=job_port))
    try:
        await stream.end_input()
        async with asyncio.timeout(SILENT_S):
            while await stream.read() is not None:
                pass
    except TimeoutError:
        return True
    finally:
        await stream.close()
    return not stream.end.error


async def _send(reader: asyncio.StreamReader, stream: JobStream) -> None:
    with suppress(GridError, OSError):
        while data := await reader.read(PIECE_BYTES):
            await stream.write(data)
        await stream.end_input()
