"""The ways in which followers of `./run bench logs` read, and the services' settings for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Protocol

import aiohttp
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from grpc import StatusCode, aio

from deepgrid.chain.book import AddressBook
from deepgrid.compat.logger_api.logger_pb2 import ReadRequest, ReadResponse
from deepgrid.services.admission import Limits
from deepgrid.services.admission.limits import Rate
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.signing.request_signing import Domain, sign
from tests.bench.grpc_frames import messages
from tests.services.edge_support import Edge

SOURCES = [f"127.0.5.{number}" for number in range(1, 5)]
READ = "/logger.v1alpha1.LoggerAPI/Read"
WAIT_S = 20
RETRY_S = 0.5
MANY = Rate(2000, 5000)


class Transport(Protocol):
    """A way to follow a log.

    Attributes:
        edge: The proxy's limits for 500 followers of this kind.
        limits: The limits of the services for them.
    """

    edge: EdgeLimits
    limits: Limits

    def address(self, edge: Edge) -> str:
        """Return the address where followers read."""
        ...

    def lines(
        self, url: str, book: AddressBook, account: LocalAccount, job_id: int, number: int
    ) -> AsyncIterator[bytes]:
        """Return the lines of a log, without their ends, until it is complete.

        `number` counts the followers of a process.
        """
        ...


class LongPolls:
    """Signed HTTP requests that wait for output. A follower sends the next request as soon as it has an answer."""

    edge = EdgeLimits(requests_per_s=5000, requests_at_once=20_000)
    limits = Limits(requests_per_signer=MANY, strangers_per_address=MANY, running_per_address=512)

    def address(self, edge: Edge) -> str:
        return edge.url

    async def lines(
        self, url: str, book: AddressBook, account: LocalAccount, job_id: int, number: int
    ) -> AsyncIterator[bytes]:
        domain, offset, rest, final = Domain(book.chain_id, book.meta_scheduler), 0, b"", False
        connector = aiohttp.TCPConnector(local_addr=(SOURCES[number % len(SOURCES)], 0), limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            while not final:
                path = f"/v1/jobs/{job_id}/log?offset={offset}&wait={WAIT_S}"
                headers = sign(account, domain, "GET", path, b"", int(time.time()))
                async with session.get(url + path, headers=headers) as answer:
                    body = await answer.read()
                if answer.status in (429, 503):
                    await asyncio.sleep(RETRY_S)
                    continue
                assert answer.status == 200, body
                final, offset = answer.headers["X-Final"] == "true", int(answer.headers["X-Next-Offset"])
                *whole, rest = (rest + body).split(b"\n")
                for line in whole:
                    yield line


class GrpcStreams:
    """Streams of the method `Read`, each over a connection of its own.

    The first follower of each process reads with grpcio. The others read the frames, which costs little.
    """

    edge = EdgeLimits()
    limits = Limits()

    def address(self, edge: Edge) -> str:
        return edge.grpc

    async def lines(
        self, url: str, book: AddressBook, account: LocalAccount, job_id: int, number: int
    ) -> AsyncIterator[bytes]:
        name, timestamp = f"0x{job_id:064x}", int(time.time())
        signed = account.sign_message(encode_defunct(text=f"read:{account.address.lower()}/{name}/{timestamp}"))
        request = ReadRequest(
            address=account.address, log_name=name, timestamp=timestamp, signed_hash=bytes(signed.signature)
        ).SerializeToString()
        begun = False
        while not begun:
            answers = (
                messages(url, READ, request, SOURCES[number % len(SOURCES)])
                if number
                else self._by_grpcio(url, request)
            )
            async for answer in answers:
                begun = True
                yield ReadResponse.FromString(answer).data
            if not begun:  # refused: too many requests at the moment
                await asyncio.sleep(RETRY_S)

    async def _by_grpcio(self, url: str, request: bytes) -> AsyncIterator[bytes]:
        async with aio.insecure_channel(url, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                async for answer in channel.unary_stream(READ)(request):
                    yield answer
            except aio.AioRpcError as error:
                if error.code() is not StatusCode.RESOURCE_EXHAUSTED:  # it comes only before the first line
                    raise


TRANSPORTS: dict[str, Transport] = {"grpc": GrpcStreams(), "http": LongPolls()}
