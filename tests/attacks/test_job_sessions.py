"""Attacks on sessions in running jobs: over real services behind nginx, with a real Slurm and its agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from deepgrid.client.tunnel.job_tunnel import SessionLost
from deepgrid.errors import AccessDenied, ServiceError
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.tunnels.secure_channel import LONGEST_ANSWER, MAX_SEALED, OpeningTunnel, TunnelAnswer
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW, StreamRequest
from tests.provider.tunnels.tunnel_support import WITHIN_S, LiveGrid, live_grid, live_job, opened, until_true
from tests.services.support import ACCOUNTS, client_of, session_key
from tests.slurm.support import Box

SLEEP = StreamRequest(kind="exec", command=("sleep", "600"))


@pytest.fixture
async def live(box: Box, tmp_path: Path) -> AsyncIterator[LiveGrid]:
    async with live_grid(box, tmp_path) as live:
        yield live


async def _answer_to(live: LiveGrid, job_id: int, opening: OpeningTunnel) -> TunnelAnswer:
    """Let hostile services hand any opening to the supervisor, and return its answer."""
    job = live.services.chain.jobs_by_id[job_id]
    assert (await live.at(job).exec(["true"])).status == 0  # the supervisor asks for invitations
    token = live.services.context.switchboard.invite(job, opening.opening)
    client = TunnelsClient(live.services.clients["customer"])
    try:
        socket = await client.join(ACCOUNTS["provider"].address, token)
        return TunnelAnswer.model_validate_json(await socket.receive())
    finally:
        await client.close()


@pytest.mark.attack(
    "opens a session in another customer's job, even with the help of the services", attacker="a customer",
    gain="a refusal by the services, and one by the supervisor",
    defence="both check the signature of the job's customer, for this job, claim and provider",
)  # fmt: skip
async def test_another_customer_gets_into_no_job(live: LiveGrid) -> None:
    job = await live.running_job()
    with pytest.raises(AccessDenied, match="only its customer"):
        await live.at(job, "rival").exec(["id"])
    forged = live.services.clients["rival"].open_tunnel(job)
    answer = await _answer_to(live, job.id, forged)
    assert "not signed by the customer" in answer.refused
    weak = live_job(job, client_of(live.services.url, session_key(rights="read,store")))
    with pytest.raises(AccessDenied, match="no right to shell"):
        await weak.exec(["id"])
    assert not live.host.tunnels


@pytest.mark.attack(
    "opens WebSockets without a token, with an invented one, and with one that was used", attacker="a stranger",
    gain="a refusal of the handshake",
    defence="a WebSocket needs a token that is good once; only signed requests give tokens",
)  # fmt: skip
async def test_a_stranger_opens_no_websocket(live: LiveGrid) -> None:
    job = await live.running_job()
    used: list[str] = []
    async with aiohttp.ClientSession() as stranger:
        base = f"{live.services.url}/v1/tunnels/{job.provider}"
        assert (await stranger.post(f"{base}/jobs/{job.id}", json={})).status == 401
        assert (await stranger.get(f"{base}/invitations?wait=0")).status == 401
        async with await opened(live.at(job)) as tunnel:
            used.append(str(tunnel._socket._socket._response.url).rpartition("/")[2])  # type: ignore[attr-defined]
            for token in ("", "0" * 64, "../" * 8, used[0]):
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    await stranger.ws_connect(f"{base}/ends/{token}")
            stream = await tunnel.stream(StreamRequest(kind="exec", command=("echo", "alive")))
            assert await stream.read() is not None
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await stranger.ws_connect(f"{base}/ends/{used[0]}")


@pytest.mark.parametrize("junk", [b"x" * (MAX_SEALED + LONGEST_ANSWER + 1), b"x" * 40, "text"], ids=len)
@pytest.mark.attack(
    "sends messages that are too long, not encrypted, or text", attacker="a customer", gain="the end of this session",
    defence="messages have a size; each is opened with the session's key and its number",
)  # fmt: skip
async def test_junk_ends_its_own_session(live: LiveGrid, junk: bytes | str) -> None:
    job = live.at(await live.running_job())
    async with await opened(job) as tunnel, await opened(job) as untouched:
        socket = tunnel._socket._socket  # type: ignore[attr-defined]
        await (socket.send_bytes(junk) if isinstance(junk, bytes) else socket.send_str(junk))
        with pytest.raises(SessionLost):
            async with asyncio.timeout(WITHIN_S):
                await tunnel.until_lost()
        stream = await untouched.stream(StreamRequest(kind="exec", command=("echo", "alive")))
        assert await stream.read() is not None
        await until_true(lambda: len(live.host.tunnels) == 1, "the session stays")


@pytest.mark.attack(
    "changes one digit of an opening's signature, its key or its time", attacker="the operator's services",
    gain="a refusal", defence="the customer's signature covers all of an opening",
)  # fmt: skip
async def test_a_changed_opening_is_refused(live: LiveGrid) -> None:
    job = await live.running_job()
    signed = live.services.clients["customer"].open_tunnel(job)
    opening = signed.opening
    for change in (
        {"signature": opening.signature[:-4] + ("00" if opening.signature[-4:-2] != "00" else "01") + "1b"},
        {"public_key": "11" * 32},
        {"issued_at": opening.issued_at - 1},
    ):
        changed = replace(signed, opening=opening.model_copy(update=change))
        assert (await _answer_to(live, job.id, changed)).refused
    assert not live.host.tunnels


@pytest.mark.attack(
    "sends a customer's opening a second time", attacker="the operator's services",
    gain="a refusal; without the customer's key, the keys of a session are out of reach anyway",
    defence="the supervisor remembers openings for as long as they are valid, and signs a fresh key each time",
)  # fmt: skip
async def test_an_opening_is_good_once(live: LiveGrid) -> None:
    job = await live.running_job()
    opening = live.services.clients["customer"].open_tunnel(job)
    assert (await _answer_to(live, job.id, opening)).public_key
    assert "used before" in (await _answer_to(live, job.id, opening)).refused


@pytest.mark.attack(
    "reads nothing of what a job prints, or prints without end", attacker="a customer",
    gain="one window of 128 KiB per command, in each process", defence="windows that the reader's progress extends",
)  # fmt: skip
async def test_a_slow_reader_keeps_one_window(live: LiveGrid) -> None:
    job = live.at(await live.running_job())
    async with await opened(job) as tunnel:
        streams = [await tunnel.stream(StreamRequest(kind="exec", command=("cat", "/dev/zero"))) for _ in range(8)]
        await until_true(lambda: all(one._arrived == FIRST_WINDOW for one in streams), "a window is not full")
        (served,) = live.host.tunnels
        assert served.traffic.from_job == 8 * FIRST_WINDOW
        assert (await job.exec(["echo", "another session works"])).text == "another session works\n"


@pytest.mark.attack(
    "opens 200 sessions in a job", attacker="a customer", gain="16 sessions of one agent",
    defence="bounds per job, per customer and in all, at the services and at the supervisor",
)  # fmt: skip
async def test_sessions_of_a_job_are_bounded(live: LiveGrid) -> None:
    job = live.at(await live.running_job())
    tunnels = [await opened(job)]
    found = await asyncio.gather(*(opened(job) for _ in range(199)), return_exceptions=True)
    tunnels += [one for one in found if not isinstance(one, BaseException)]
    refusals = [one for one in found if isinstance(one, BaseException)]
    assert len(tunnels) <= 16
    assert refusals
    assert all(isinstance(one, ServiceError) for one in refusals), refusals
    for tunnel in tunnels:
        await tunnel.close()
    await until_true(lambda: not live.host.tunnels, "a session stays")
    assert (await job.exec(["true"])).status == 0


@pytest.mark.attack(
    "replaces the agent in the job by a program that breaks the protocol", attacker="a customer's job",
    gain="the end of the sessions of this job", defence="frames, windows and kinds are checked by the supervisor",
)  # fmt: skip
async def test_an_agent_that_breaks_the_protocol_ends_its_own_sessions(live: LiveGrid) -> None:
    job, other = await live.running_job(), await live.running_job()
    async with await opened(live.at(job)) as tunnel, await opened(live.at(other)) as untouched:
        stream = await tunnel.stream(SLEEP)
        junk = "printf '\\377\\377\\377\\377' > /proc/$PPID/fd/1"  # the agent starts it, and has the line as its output
        await tunnel.stream(StreamRequest(kind="exec", command=("sh", "-c", junk)))
        with pytest.raises(SessionLost, match="broke the protocol"):
            async with asyncio.timeout(WITHIN_S):
                await stream.read()
        alive = await untouched.stream(StreamRequest(kind="exec", command=("echo", "alive")))
        assert await alive.read() is not None


@pytest.mark.attack(
    "is killed in the middle of a session", attacker="the supervisor's machine",
    gain="the customer reads a warning: the command may still run", defence="an end that is not sealed is no end",
)  # fmt: skip
async def test_a_supervisor_that_dies_ends_sessions_with_an_error(live: LiveGrid) -> None:
    async with await opened(live.at(await live.running_job())) as tunnel:
        stream = await tunnel.stream(SLEEP)
        live.serving.cancel()
        with pytest.raises(SessionLost):
            async with asyncio.timeout(WITHIN_S):
                await stream.read()
