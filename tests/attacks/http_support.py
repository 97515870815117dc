"""Raw connections and signed requests of strangers, each from its own source address."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from coincurve import PrivateKey
from eth_account import Account
from eth_account.signers.local import LocalAccount
from sqlalchemy import func, select

from deepgrid.services.messages import Revocation, Upload
from deepgrid.services.signing.request_signing import sign
from deepgrid.services.storage.database import (
    Definition,
    Log,
    LogChunk,
    NoticeRecord,
    ReleaseRecord,
    RevokedSession,
    Table,
    UsedNonce,
)
from deepgrid.services.storage.kept_rows import KeptJob
from deepgrid.services.storage.use_table import JobUseRecord
from deepgrid.workflow import canonical, hash_definition
from tests.services.support import ACCOUNTS, DOMAIN, Grid, a_job, session_key

HALF_HEAD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-Half"
WHOLE_HEAD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
PATIENCE_S = 60.0

SALT = bytes(32)
CONTENT = canonical(a_job())
DEFINITION_HASH = hash_definition(SALT, CONTENT).encode()
UPLOAD = f"/v1/definitions/{DEFINITION_HASH.decode()}"
UPLOAD_BODY = Upload(salt=SALT.hex(), definition=CONTENT.decode()).model_dump_json().encode()
RELEASE_BODY = b'{"location_hash":"%s","public_key":"%s"}' % (
    DEFINITION_HASH,
    PrivateKey().public_key.format().hex().encode(),
)
NOTICE_BODY = b'{"kind":"test","text":"hello"}'
SESSION = session_key().session
TUNNELS = f"/v1/tunnels/{ACCOUNTS['provider'].address}"
TUNNEL_BODY = b'{"claimed_at":3,"public_key":"%s","issued_at":1,"signature":"%s"}' % (b"00" * 32, b"00" * 65)
REQUESTS = {  # every request that a signer may send, for another customer's job
    "upload": ("PUT", UPLOAD, UPLOAD_BODY),
    "release": ("POST", "/v1/jobs/1/definition", RELEASE_BODY),
    "releases": ("GET", f"{UPLOAD}/releases", b""),
    "push": ("POST", "/v1/jobs/1/log?offset=0", b"forged"),
    "read": ("GET", "/v1/jobs/1/log?offset=0&wait=20", b""),
    "notice": ("POST", "/v1/jobs/1/notices", NOTICE_BODY),
    "uses": ("POST", "/v1/uses", b'{"uses":[{"job_id":1,"claimed_at":3,"run_s":60}]}'),
    "file": ("GET", "/v1/jobs/1/file", b""),
    "mark": ("PUT", "/v1/marks", b'{"marks":[{"definition_hash":"%s","note":"x"}]}' % DEFINITION_HASH),
    "marks": ("GET", "/v1/marks", b""),
    "tunnel": ("POST", f"{TUNNELS}/jobs/1", TUNNEL_BODY),
    "invitations": ("GET", f"{TUNNELS}/invitations", b""),
    "revoke": ("POST", "/v1/sessions/revoke", Revocation(session=SESSION.header()).model_dump_json().encode()),
}
STORED = (UsedNonce, Definition, KeptJob, Log, LogChunk, NoticeRecord, ReleaseRecord, RevokedSession, JobUseRecord)


@dataclass
class Raw:
    """A raw connection to the services."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> bool:
        """Send bytes. Returns whether the service still accepted them."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError:
            return False
        return True

    async def rest(self) -> bytes:
        """Return all bytes received until the service closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(OSError):
                return await self.reader.read()
            return b""


async def connect(url: str, source: str = "127.0.0.1") -> Raw:
    """Return a connection to the services from this address of 127.0.0.0/8."""
    where = urlsplit(url)
    return Raw(*await asyncio.open_connection(where.hostname, where.port, local_addr=(source, 0)))


@asynccontextmanager
async def many(url: str, count: int, data: bytes, sources: tuple[str, ...]) -> AsyncIterator[list[Raw]]:
    """Open `count` connections from these addresses in turn. Each sends `data` and then nothing."""
    opened: list[Raw] = []
    try:
        for source in itertools.islice(itertools.cycle(sources), count):
            raw = await connect(url, source)
            await raw.send(data)
            opened.append(raw)
        yield opened
    finally:
        for raw in opened:
            raw.writer.transport.abort()


@asynccontextmanager
async def person(source: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that sends from this address."""
    transport = httpx.AsyncHTTPTransport(verify=False, local_address=source, limits=httpx.Limits(max_connections=1000))
    async with httpx.AsyncClient(transport=transport, timeout=PATIENCE_S) as client:
        yield client


async def ask(
    client: httpx.AsyncClient, grid: Grid, account: LocalAccount, method: str, path: str, body: bytes = b"",
    **headers: str,
) -> httpx.Response:  # fmt: skip
    """Send a request with a correct signature of any key."""
    signed = sign(account, DOMAIN, method, path, body, int(grid.clock()))
    return await client.request(method, grid.url + path, content=body, headers={**signed, **headers})


def stranger() -> LocalAccount:
    """Return a new key."""
    account = Account.create()
    assert isinstance(account, LocalAccount)
    return account


async def rows(grid: Grid, *tables: type[Table]) -> int:
    """Return the number of rows in these tables of the services."""
    async with grid.context.database.read() as session:
        return sum([await session.scalar(select(func.count()).select_from(table)) or 0 for table in tables])
