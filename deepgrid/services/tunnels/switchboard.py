"""Joins the two connections of each tunnel. Both come from outside, with a token that is good once.

Everything is in the memory of one process: the proxy leads all requests about one provider to the same process. A
message waits in the sockets only. While one side does not read, the other side is not read either.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.websockets import WebSocket, WebSocketDisconnect

from deepgrid.lifecycle.job import Job
from deepgrid.services.admission.limits import Pace, Shares
from deepgrid.services.refusal import Refusal
from deepgrid.services.tunnels.multiplexer import PACE_S, SUBPROTOCOL, Multiplexer
from deepgrid.services.tunnels.secure_channel import (
    MAX_MESSAGE,
    MOST_INVITATIONS,
    Invitation,
    Invitations,
    TunnelOpening,
)
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket

SUPERVISOR = 1  # the side of a meeting; the customer's is 0
END_PATH = re.compile(r"/v1/tunnels/0x[0-9a-fA-F]{40}/ends/([0-9a-f]{64})\Z")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TunnelLimits:
    """Limits of the services. Times are seconds."""

    per_job: int = 16
    per_customer: int = 128
    total: int = 2048
    join_within_s: float = 30.0  # both sides, after the opening
    bytes_per_s: int = 4 * 1024 * 1024  # of one tunnel in one direction, in the long run
    burst_bytes: int = 1024 * 1024
    absent_after_s: float = 60.0  # since its last question, a supervisor counts as away
    revoked_every_s: float = 1.0  # between checks whether another process revoked a session key


@dataclass(slots=True)
class _Line:
    """The invitations of one provider."""

    waiting: list[Invitation] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    asking: int = 0
    asked_at: float = 0.0


class Meeting:
    """One tunnel: the sockets of the customer and of the supervisor, and the session key that opened it, if any."""

    def __init__(self, limits: TunnelLimits, key_hash: str | None) -> None:
        loop = asyncio.get_running_loop()
        self._limits = limits
        self.key_hash = key_hash
        self._sockets: tuple[asyncio.Future[TunnelSocket], asyncio.Future[TunnelSocket]]
        self._sockets = (loop.create_future(), loop.create_future())
        self.is_over = loop.create_future()

    async def serve(self, socket: TunnelSocket, side: int) -> None:
        """Carry messages from this side to the other one, until one of them leaves."""
        if self.is_over.done():  # it was ended after this side was let in
            await socket.close()
            return
        self._sockets[side].set_result(socket)
        try:
            async with asyncio.timeout(self._limits.join_within_s):
                other = await asyncio.shield(self._sockets[1 - side])
            pace = Pace(self._limits.bytes_per_s, self._limits.burst_bytes)
            while data := await socket.receive():
                if len(data) > MAX_MESSAGE:
                    return
                await pace.wait(len(data))
                await other.send(data)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            await self.end()

    async def end(self) -> None:
        """Close both connections."""
        if not self.is_over.done():
            self.is_over.set_result(None)
            for one in self._sockets:
                if one.done() and not one.cancelled():
                    await one.result().close()


class _Socket:
    """A WebSocket of a client, as one side of a tunnel."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(data)
        except (WebSocketDisconnect, RuntimeError):
            raise ConnectionResetError("the client has left") from None

    async def receive(self) -> bytes:
        try:
            return await self._socket.receive_bytes()
        except (WebSocketDisconnect, RuntimeError, KeyError):  # left, or sent text
            return b""

    async def close(self) -> None:
        with suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
            await self._socket.close()


class Switchboard:
    """All tunnels of one process."""

    def __init__(self, limits: TunnelLimits = TunnelLimits(), clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._ends: dict[str, tuple[Meeting, int]] = {}
        self._past: dict[str, tuple[Meeting, int]] = {}  # of supervisors, whose tunnels ended before they joined
        self._of_keys: set[Meeting] = set()  # that session keys opened
        self._by_job = Shares(limits.per_job, limits.total)
        self._by_customer = Shares(limits.per_customer, limits.total)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open_tunnels(self) -> int:
        """How many tunnels are open or about to open."""
        return self._by_job.all_held

    def knows(self, path: str) -> bool:
        """Return whether a client may connect at this path now: its token was given out, and not used yet."""
        found = END_PATH.match(path)
        return found is not None and found[1] in self._ends

    @property
    def session_keys(self) -> set[str]:
        """The hashes of the session keys whose tunnels are open or about to open."""
        return {one.key_hash for one in self._of_keys if one.key_hash}

    async def end_of(self, key_hashes: Collection[str]) -> None:
        """End the tunnels that these session keys opened."""
        for meeting in [one for one in self._of_keys if one.key_hash in key_hashes]:
            await meeting.end()

    def invite(self, job: Job, opening: TunnelOpening, key_hash: str | None = None) -> str:
        """Invite the job's supervisor. Returns the token of the customer's connection.

        `key_hash` names the session key that opens the tunnel; None for the wallet.

        Refuses with 429 above a limit, and with 503 while no supervisor asks for invitations.
        """
        assert job.provider is not None
        line = self._lines.get(job.provider)
        if line is None or not (line.asking or self._clock() - line.asked_at < self.limits.absent_after_s):
            raise Refusal(503, "the job's cluster takes no sessions now", retry_after_s=2)
        held = [(self._by_job, str(job.id)), (self._by_customer, job.customer)]
        for number, (shares, key) in enumerate(held):
            if not shares.take(key):
                for taken, of in held[:number]:
                    taken.give_back(of)
                raise Refusal(429, f"too many sessions are open; end one of {'the job' if not number else 'yours'}")
        meeting = Meeting(self.limits, key_hash)
        if key_hash is not None:
            self._of_keys.add(meeting)
        tokens = [secrets.token_hex(32), secrets.token_hex(32)]
        self._ends |= {token: (meeting, side) for side, token in enumerate(tokens)}
        task = asyncio.create_task(self._watch(meeting, tokens, held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        line.waiting.append(Invitation(token=tokens[1], job_id=job.id, opening=opening))
        line.news.set()
        return tokens[0]

    async def invitations(self, provider: str, wait_s: float) -> Invitations:
        """Return what is new for this provider. Waits up to `wait_s` for something."""
        line = self._lines.setdefault(provider, _Line())
        line.asking += 1
        try:
            async with asyncio.timeout(wait_s):
                await line.news.wait()
        except TimeoutError:
            pass
        finally:
            line.asking -= 1
            line.asked_at = self._clock()
        found = [one for one in line.waiting if one.token in self._ends]
        line.waiting = found[MOST_INVITATIONS:]
        if not line.waiting:
            line.news.clear()
        return Invitations(invitations=found[:MOST_INVITATIONS])

    async def join(self, token: str, socket: WebSocket) -> None:
        """Serve the connection with this token until the tunnel is over. Refuses unknown and used tokens."""
        found = self._ends.pop(token, None)
        if found is None:
            await socket.close()
            return
        meeting, side = found
        if side == SUPERVISOR and SUBPROTOCOL in socket.scope["subprotocols"]:
            await socket.accept(subprotocol=SUBPROTOCOL)
            await self._serve_many(meeting, side, _Socket(socket))
        else:
            await socket.accept()
            await meeting.serve(_Socket(socket), side)

    async def _serve_many(self, meeting: Meeting, side: int, socket: TunnelSocket) -> None:
        """Serve all tunnels that join through this connection."""
        async with asyncio.TaskGroup() as group:

            def admit(token: str, tunnel: TunnelSocket) -> bool:
                found = self._ends.pop(token, None) or self._past.pop(token, None)
                if found is not None:  # a meeting that is over closes the tunnel at once
                    group.create_task(_serve_one(found[0], tunnel, found[1]))
                return found is not None

            many = Multiplexer(socket, admit, gather_s=0.0, pace_s=PACE_S)
            try:
                group.create_task(_serve_one(meeting, many.first, side))
                while not (await asyncio.wait({many.over}, timeout=self.limits.join_within_s))[0]:
                    if not many.tunnels:
                        break
            finally:
                await many.close()

    async def close(self) -> None:
        """Forget all invitations."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, meeting: Meeting, tokens: list[str], held: list[tuple[Shares, str]]) -> None:
        """Give everything back when the tunnel is over, or was not joined in time."""
        try:
            try:
                async with asyncio.timeout(self.limits.join_within_s):
                    await asyncio.shield(meeting.is_over)
            except TimeoutError:
                if not any(token in self._ends for token in tokens):
                    await meeting.is_over
        finally:
            self._forget(tokens)
            self._of_keys.discard(meeting)
            for shares, key in held:
                shares.give_back(key)

    def _forget(self, tokens: list[str]) -> None:
        """Make the tokens bad. A supervisor that uses its own meanwhile has not invented it."""
        for token in tokens:
            found = self._ends.pop(token, None)
            if found is not None and found[0].is_over.done() and found[1] == SUPERVISOR:
                self._past[token] = found
                asyncio.get_running_loop().call_later(self.limits.join_within_s, self._past.pop, token, None)


async def _serve_one(meeting: Meeting, tunnel: TunnelSocket, side: int) -> None:
    """Serve one of the tunnels in a WebSocket. What goes wrong ends this tunnel only."""
    try:
        await meeting.serve(tunnel, side)
    except Exception as error:
        logger.error("a tunnel failed: unexpected error (%s)", type(error).__name__)
