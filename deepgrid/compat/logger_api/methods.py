"""The methods of the log service. Each takes a request's bytes and yields batches of answers, as bytes.

They end by returning (status 0) or with a GRPCError. A batch is small, and nothing is read ahead: a slow reader costs
one batch of memory.

A request has an EIP-191 personal signature of a short text that names address, log and time. The text holds no nonce. A
request may be sent again for ten minutes, so it must stay secret in transit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import TypeVar

from eth_utils.address import to_checksum_address
from google.protobuf.message import DecodeError, Message
from grpclib import GRPCError, Status
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.chain.transactions.eth_accounts import encode_defunct
from deepgrid.compat.compat_context import CompatContext
from deepgrid.compat.logger_api.log_lines import LineMessages
from deepgrid.compat.logger_api.logger_pb2 import ReadRequest, WatchListRequest, WatchListResponse
from deepgrid.compat.logger_api.status import as_grpc_errors, invalid
from deepgrid.services.following.log_tails import ASK_CHAIN_S
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.signatures import BadRequestSignature, signer_of
from deepgrid.services.storage.database import Log

WINDOW_S = 600
MILLISECONDS_FROM = 10**11  # as seconds this is the year 5138, as milliseconds 1973

ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
RECOVERY_IDS = {0: 27, 1: 28, 27: 27, 28: 28}
SERVICE = "logger.v1alpha1.LoggerAPI"
LONGEST_REQUEST_BYTES = 8 * 1024
MOST_NAMES = 10_000  # in one list: the newest jobs
JOBS_PER_QUERY = 500

LOG_NAME = re.compile(r"0x[0-9a-f]{64}")

Batches = AsyncGenerator[Sequence[bytes], None]
Method = Callable[[CompatContext, str, bytes], Batches]
M = TypeVar("M", bound=Message)


def reader_of(request: ReadRequest, now: int) -> str:
    """Return the signer's address with checksum. Raises GRPCError UNAUTHENTICATED unless the request names it."""
    text = f"read:{request.address.lower()}/{request.log_name}/{request.timestamp}"
    return _verify_signer([text], request, now)


def watcher_of(request: WatchListRequest, now: int) -> str:
    """Return the signer like `reader_of`. Accepts the address in the text in lower case and as sent."""
    addresses = (request.address.lower(), request.address)
    return _verify_signer([f"watchList:{address}/{request.timestamp}" for address in addresses], request, now)


def _verify_signer(texts: list[str], request: ReadRequest | WatchListRequest, now: int) -> str:
    if not ADDRESS.fullmatch(request.address):
        raise _unauthenticated("the address must be 0x and 40 hex digits")
    if len(request.signed_hash) != 65 or request.signed_hash[64] not in RECOVERY_IDS:
        raise _unauthenticated("the signature must have 65 bytes: r, s, and v of 0, 1, 27 or 28")
    signed_at = request.timestamp // (1000 if request.timestamp >= MILLISECONDS_FROM else 1)
    if abs(now - signed_at) > WINDOW_S:
        raise _unauthenticated(f"the request was signed more than {WINDOW_S} s off the service's clock")
    signature = request.signed_hash[:64] + bytes([RECOVERY_IDS[request.signed_hash[64]]])
    address = str(to_checksum_address(request.address))
    try:
        if any(signer_of(encode_defunct(text=text), signature) == address for text in texts):
            return address
    except BadRequestSignature as fault:
        raise _unauthenticated(str(fault)) from None
    raise _unauthenticated("the signature is not one of this request by this address")


def _unauthenticated(sentence: str) -> GRPCError:
    return GRPCError(Status.UNAUTHENTICATED, sentence)


async def answers(path: str, context: CompatContext, source: str, message: bytes) -> Batches:
    """Call the method at `path` for a caller at the address `source`. Raises GRPCError only."""
    with as_grpc_errors():
        method = METHODS.get(path)
        if method is None:
            raise GRPCError(Status.UNIMPLEMENTED, NOT_OFFERED.get(path, "there is no such method"))
        async with aclosing(method(context, source, message)) as batches:
            async for batch in batches:
                yield batch


async def read(context: CompatContext, source: str, message: bytes) -> Batches:
    """Yield the log of a job from its first line, then new lines, until it is complete."""
    request = _parse(ReadRequest, message)
    reader = reader_of(request, context.services.clock())
    job_id = _job_id(request.log_name)
    context.admission.look_up(source, reader)
    lines, claimed_at, at_ns = LineMessages(), None, 0
    with context.services.log_tails.counted(job_id), context.admission.running.lend(source):
        await _await_job(context, job_id, reader)
        async with aclosing(context.services.log_tails.follow(job_id, reader)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                if claimed_at != piece.claimed_at:
                    context.admission.accept(reader)
                    for batch in lines.rest(at_ns):
                        yield batch
                claimed_at, at_ns = piece.claimed_at, piece.at_ns
                for batch in lines.batches(piece.data, at_ns):
                    yield batch
        for batch in lines.rest(at_ns):
            yield batch


async def watch_list(context: CompatContext, source: str, message: bytes) -> Batches:
    """Yield the names of the address's logs, now and every few seconds."""
    request = _parse(WatchListRequest, message)
    watcher = watcher_of(request, context.services.clock())
    with _count_stream(context, source, watcher):
        while True:
            context.admission.look_up(source, watcher)
            names = await _names(context, watcher)
            if names:
                context.admission.accept(watcher)
            yield [WatchListResponse(log_names=names).SerializeToString()]
            await asyncio.sleep(context.limits.list_every_s)


async def check_health(context: CompatContext, _source: str, message: bytes) -> Batches:
    """gRPC's health service: whether the store answers."""
    request = _parse(HealthCheckRequest, message)
    if request.service not in ("", SERVICE):
        raise GRPCError(Status.NOT_FOUND, "this service is not here")
    yield [await _health(context, request)]


async def watch_health(context: CompatContext, source: str, message: bytes) -> Batches:
    """Answer like `check_health`, now and at every change."""
    request = _parse(HealthCheckRequest, message)
    told = b""
    with _count_stream(context, source, f"health {source}"):
        while True:
            health = await _health(context, request)
            if health != told:
                yield [health]
            told = health
            await asyncio.sleep(context.limits.list_every_s)


METHODS: dict[str, Method] = {
    f"/{SERVICE}/Read": read,
    f"/{SERVICE}/WatchList": watch_list,
    "/grpc.health.v1.Health/Check": check_health,
    "/grpc.health.v1.Health/Watch": watch_health,
}

NOT_OFFERED = {f"/{SERVICE}/Write": "the log service takes output from the grid's providers only, over signed HTTP"}


def _parse(kind: type[M], message: bytes) -> M:
    if len(message) > LONGEST_REQUEST_BYTES:
        raise invalid(f"the request is larger than {LONGEST_REQUEST_BYTES} bytes")
    try:
        return kind.FromString(message)
    except DecodeError:
        raise invalid(f"the request is not a {kind.DESCRIPTOR.full_name}") from None


def _job_id(log_name: str) -> int:
    if not LOG_NAME.fullmatch(log_name):
        raise invalid("log_name must be the id of a job: 0x and 64 lower-case hex digits")
    job_id = int(log_name, 16)
    if not 0 < job_id < 2**63:
        raise GRPCError(Status.NOT_FOUND, f"there is no job {job_id}")
    return job_id


async def _await_job(context: CompatContext, job_id: int, reader: str) -> None:
    """Wait for a job that the next blocks may contain. Existing clients read a log before the job's block is mined.

    Also returns at the timeout, or when too many readers wait. The reader is refused then.
    """
    with context.awaited_jobs.hold(reader) as held, suppress(TimeoutError):
        async with asyncio.timeout(context.limits.job_within_s if held else 0):
            while True:
                if await _exists(context, job_id):
                    return
                await asyncio.sleep(ASK_CHAIN_S)


async def _exists(context: CompatContext, job_id: int) -> bool:
    try:
        await context.services.log_tails.job(job_id)
    except Refusal as refusal:
        return refusal.status != 404
    return True


@contextmanager
def _count_stream(context: CompatContext, source: str, key: str) -> Iterator[None]:
    """Count a stream that follows no log."""
    admission = context.admission
    with admission.followers_by_job.hold(key) as held:
        if not held:
            raise Refusal(429, "too many streams are open for you", retry_after_s=2)
        with admission.running.lend(source):
            yield


async def _names(context: CompatContext, customer: str) -> list[str]:
    """Return the names of the logs of the customer's jobs, oldest first."""
    job_ids = (await context.services.chain.jobs_by_customer(customer))[-MOST_NAMES:]
    found = set[int]()
    for start in range(0, len(job_ids), JOBS_PER_QUERY):
        async with context.services.database.read() as session:
            wanted = select(Log.job_id).where(Log.job_id.in_(job_ids[start : start + JOBS_PER_QUERY]))
            found.update(await session.scalars(wanted))
    return [f"0x{job_id:064x}" for job_id in job_ids if job_id in found]


async def _health(context: CompatContext, request: HealthCheckRequest) -> bytes:
    if request.service not in ("", SERVICE):
        return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN).SerializeToString()
    try:
        async with context.services.database.read() as session:
            await session.execute(text("select 1"))
    except SQLAlchemyError:
        return HealthCheckResponse(status=HealthCheckResponse.NOT_SERVING).SerializeToString()
    return HealthCheckResponse(status=HealthCheckResponse.SERVING).SerializeToString()
