"""What a stolen session key opened ends with its revocation: sessions in jobs, and links to files."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from deepgrid.errors import AccessDenied
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client import FilesClient
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.signing.signers import SessionKey
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.files.conftest import files  # noqa: F401 - a fixture
from tests.services.files.support import FileGrid, get, grid_job, put
from tests.services.support import ACCOUNTS, Grid, Start, client_of, session_key

THIEF = "an attacker with a session key"
WITHIN_S = 120.0
EMPTY_FILE = b"0 644 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\0"
HASH = "0" * 64


async def _joined(grid: Grid, key: SessionKey, held: AsyncExitStack) -> tuple[TunnelSocket, TunnelSocket]:
    """Open a tunnel with the key, and return both connected sides: the key's, and the supervisor's."""
    thief, provider = TunnelsClient(await held.enter_async_context(client_of(grid.url, key))), grid.provider
    host = TunnelsClient(provider)
    for client in (thief, host):
        held.push_async_callback(client.close)
    address = ACCOUNTS["provider"].address
    waiting = asyncio.create_task(host.invitations(address, 20))
    async with asyncio.timeout(WITHIN_S):
        while not (line := grid.context.switchboard._lines.get(address)) or not line.asking:
            await asyncio.sleep(0.01)
        _, mine = await thief.open(grid.chain.jobs_by_id[1])
        (invitation,) = await waiting
        theirs = await host.join(address, invitation.token)
        for one in (mine, theirs):
            held.push_async_callback(one.close)
        await mine.send(b"id")
        assert await theirs.receive() == b"id"
    return mine, theirs


@pytest.mark.attack(
    "keeps its session in a job open after the owner revoked the key, at this process of the services or another",
    attacker=THIEF, gain="some seconds",
    defence="a tunnel has the key that opened it; each process ends the tunnels of revoked keys",
)  # fmt: skip
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_session_in_a_job_ends_with_its_key(start: Start, elsewhere: bool) -> None:  # noqa: F811
    grid = await start()
    revoking = await start(grid.chain) if elsewhere else grid
    grid.chain.put(1, HASH, JobStatus.RUNNING)
    stolen, other = session_key(rights="shell"), session_key(rights="shell")
    async with AsyncExitStack() as held:
        ended, untouched = await _joined(grid, stolen, held), await _joined(grid, other, held)
        await revoking.customer.revoke(stolen.session)
        async with asyncio.timeout(WITHIN_S):
            for side in ended:
                assert await side.receive() == b""  # it has ended
        await untouched[0].send(b"alive")
        assert await untouched[1].receive() == b"alive"
        with pytest.raises(AccessDenied, match="revoked"):
            await TunnelsClient(await held.enter_async_context(client_of(grid.url, stolen))).open(
                grid.chain.jobs_by_id[1]
            )


@pytest.mark.attack(
    "makes a link for a year with a key that may only store, or keeps the links of a key that was revoked",
    attacker=THIEF, gain="nothing after the revocation",
    defence="a link needs the rights `read` and `store`, has the key that made it, and ends with its revocation",
)  # fmt: skip
async def test_links_end_with_their_key(files: FileGrid) -> None:  # noqa: F811
    await files.claimed(grid_job(":"))
    address = (await files.addresses()).output
    assert (await put(address + "/manifest", EMPTY_FILE)).status_code == 204
    assert (await put(address + "/finish", b"")).status_code == 204
    async with client_of(files.services.url, session_key(rights="store")) as weak:
        with pytest.raises(AccessDenied, match="no right to read"):
            await FilesClient(weak).share(1, 3600)
    stolen, owner = session_key(), files.client()
    async with client_of(files.services.url, stolen) as thief:
        link = owner.url((await FilesClient(thief).share(1, 366 * 24 * 3600)).address or "")
    kept = owner.url((await owner.share(1, 3600)).address or "")
    assert (await get(link + "/sums")).status_code == 200
    await files.services.customer.revoke(stolen.session)
    assert [(await get(one + "/sums")).status_code for one in (link, kept)] == [404, 200]
