"""A running job that its customer can get into: commands, terminals, ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepgrid.errors import GridError, InputError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.tunnel.job_tunnel import JobTunnel
    from deepgrid.client.tunnel.port_forward import AsyncPortForward
    from deepgrid.lifecycle.job import Job

NOTICE_AFTER_S = 2.0
MOST_OUTPUT = 64 * 1024 * 1024  # bytes that `exec` keeps


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command in a job printed, and how it ended.

    Attributes:
        status: Its exit status as a shell gives it: 137 after signal 9.
        stdout: Standard output.
        stderr: Standard error.
    """

    status: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")


class LiveJob:
    """The part of `AsyncJob` about sessions in the running job."""

    _connection: Connection
    _job: Job

    async def exec(self, command: Sequence[str] | str, *, input: bytes | str = b"") -> CommandOutput:
        """Run a command in the running job, on its first node, as the job's account.

        It runs alongside the job's own steps, in the job's working folder, and outside of its containers.

        Args:
            command: The program and its arguments. A text is a command line for `sh`.
            input: Its standard input.

        Returns:
            Output and exit status. The status of a command that failed is no error.

        Raises:
            InputError: The job does not run.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions, or the session ended before the command.
        """
        from deepgrid.client.tunnel.terminal_line import carry  # here, as below: most uses of jobs need no session
        from deepgrid.services.tunnels.tunnel_frames import Kind, StreamRequest

        words = ["/bin/sh", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        kept: dict[Kind, bytearray] = {Kind.DATA: bytearray(), Kind.ERRORS: bytearray()}

        async def keep(kind: Kind, data: bytes) -> None:
            kept[kind] += data
            if len(kept[kind]) > MOST_OUTPUT:
                raise InputError(
                    f"The command prints more than {MOST_OUTPUT // 2**20} MiB.", next_step="Write it to a file."
                )

        async with await self._tunnel() as tunnel:
            stream = await tunnel.stream(StreamRequest(kind="exec", command=tuple(words)))
            status = await carry(stream, _once(input.encode() if isinstance(input, str) else input), keep)
        return CommandOutput(status, bytes(kept[Kind.DATA]), bytes(kept[Kind.ERRORS]))

    async def forward(
        self, port: int, local_port: int = 0, *, say: Callable[[str], None] | None = None
    ) -> AsyncPortForward:
        """Make a port of the running job reachable on this machine's loopback, until it is closed.

        Args:
            port: A port on the loopback of the job's first node.
            local_port: The port on this machine; 0 for a free one.
            say: Called with a sentence when a connection fails in the job.

        Returns:
            The forward, with its `port` and `url`. Close it at the end.

        Raises:
            InputError: The job does not run, or the port on this machine is taken.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions.
        """
        from deepgrid.client.tunnel.port_forward import listening

        if not 0 < port < 65536 or not 0 <= local_port < 65536:
            raise InputError("A port is a number from 1 to 65535.")
        tunnel = await self._tunnel()
        try:
            return await listening(tunnel, port, local_port, say)
        except GridError:
            await tunnel.close()
            raise

    async def shell(self, command: Sequence[str] = ()) -> int:
        """Join this process's terminal to a shell in the running job, until the shell ends.

        Args:
            command: A program with its arguments, in place of the account's shell.

        Returns:
            The exit status of the shell.

        Raises:
            InputError: The job does not run, or this process has no terminal.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions, or the session ended before the shell.
        """
        from deepgrid.client.tunnel.terminal_line import in_terminal

        return await in_terminal(self._tunnel, [str(word) for word in command])

    async def _tunnel(self) -> JobTunnel:
        """Open an encrypted tunnel to the job's cluster, for several commands and connections. Close it at the end.

        Raises:
            InputError: The job does not run.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions.
        """
        from deepgrid.client.tunnel.job_tunnel import JobTunnel

        connection = self._connection
        services = connection.session.services
        self._job = await connection.reads.job(self._job.id)
        return await JobTunnel.open(services, self._job, connection.chain.book.authorities)


async def open_port(job: LiveJob, port: int, local_port: int, say: Callable[[str], None]) -> AsyncPortForward:
    """Forward a port as soon as the job runs and a program listens there. `say` gets a sentence for each longer wait.

    Without a `local_port`, it is the job's own one if that is free here. Errors are as for `LiveJob.forward`.
    """
    from deepgrid.client.tunnel.port_forward import listening, until_answered

    await _until_running(job, say)
    tunnel = await job._tunnel()
    try:
        answered = asyncio.create_task(until_answered(tunnel, port))
        try:
            if not (await asyncio.wait({answered}, timeout=NOTICE_AFTER_S))[0]:
                say(f"Nothing listens at port {port} of job {job._job.id} yet. Waiting for it; Ctrl-C ends this")
            await answered
        finally:
            answered.cancel()
        if not local_port:
            with suppress(InputError):
                return await listening(tunnel, port, port, say)
        return await listening(tunnel, port, local_port, say)
    except BaseException:
        await tunnel.close()
        raise


async def _until_running(job: LiveJob, say: Callable[[str], None]) -> None:
    """Wait until the job runs or is over."""
    connection = job._connection
    job._job = await connection.reads.job(job._job.id)
    if not _runs_or_is_over(job._job):
        say(f"Job {job._job.id} is {job._job.status.words}. Waiting until it runs; Ctrl-C ends this")
        async for read in connection.poller.until([job._job.id], _runs_or_is_over):
            job._job = read


def _runs_or_is_over(job: Job) -> bool:
    return job.status is JobStatus.RUNNING or job.status.cold


async def run_attached(job: LiveJob, command: Sequence[str], show: Callable[[bytes, bool], None]) -> int:
    """Run a command in the job with the standard input of this process, and return its exit status.

    `show` gets each piece of the output, and whether it is of standard error. Errors are as for `LiveJob.exec`.
    """
    from deepgrid.client.tunnel.terminal_line import carry, standard_input, without_blocking
    from deepgrid.services.tunnels.tunnel_frames import Kind, StreamRequest

    async def shown(kind: Kind, data: bytes) -> None:
        is_error = kind is Kind.ERRORS
        await without_blocking(2 if is_error else 1, data, lambda piece: show(piece, is_error))

    async with await job._tunnel() as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="exec", command=tuple(command)))
        return await carry(stream, standard_input(), shown)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    if data:
        yield data
