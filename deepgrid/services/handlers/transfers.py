"""Contents of files, by addresses that are capabilities. Requests are not signed: `curl` on a node sends them.

Bytes are taken in parts of 4 MiB, each with its checksum, in any order and more than once. They are given in ranges.
What browsers get cannot run as a page of this service.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from deepgrid.sbatch.file_addresses import CHECKSUM_DIGITS, CHECKSUM_HEADER, checksum_of, part_count, part_size
from deepgrid.services.admission.gate import read_body, read_body_into
from deepgrid.services.context import Context, Services
from deepgrid.services.files.addresses import Address
from deepgrid.services.files.archives import TarView, checksums, zero_checksums, zip_of
from deepgrid.services.files.file_messages import Progress
from deepgrid.services.files.manifest import MAX_MANIFEST_BYTES, Manifest, checked_path
from deepgrid.services.files.old_bundles import make_room
from deepgrid.services.files.tables import Bundle, BundleLink
from deepgrid.services.handlers.files import Room
from deepgrid.services.refusal import Refusal

router = APIRouter(prefix="/v1/transfers/{token}")
MOST_MISSING = 1000  # numbers of parts in one answer
_RANGE = re.compile(r"bytes=([0-9]{1,16})-([0-9]{0,16})", re.ASCII)
SAFE = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def transfer_address(token: str, context: Services, room: Room) -> Address:
    """Dependency: the address of a request. Refuses with 404 a forged, expired, revoked or superseded address."""
    address = room.addresses.read(token)
    if address is None or address.until < context.clock():
        raise Refusal(404, "this address of files is wrong, or no longer good")
    room.requests.require(address.bundle)
    if address.is_for_job and not await context.claims.is_open(address.number, address.claimed_at):
        raise Refusal(403, f"job {address.number} is over: its addresses of files work no more")
    if address.use == "link":
        await _require_link(context, address)
    return address


Addressed = Annotated[Address, Depends(transfer_address)]


def writing(address: Addressed) -> Address:
    """Dependency: an address that may write."""
    if not address.writes:
        raise Refusal(403, "this address is for reading")
    return address


async def read_bundle(address: Addressed, room: Room) -> Bundle:
    """Dependency: the whole bundle of an address that may read."""
    if address.writes:
        raise Refusal(403, "this address is for sending")
    return await room.require(address.bundle, finished=True)


Writing = Annotated[Address, Depends(writing)]
Readable = Annotated[Bundle, Depends(read_bundle)]


@router.put("/manifest", status_code=204)
async def send_manifest(request: Request, address: Writing, room: Room) -> Response:
    """Take the list of files. Another list from the same job starts its upload again."""
    async with room.turn:
        text = await _checked_body(request, MAX_MANIFEST_BYTES)
        manifest = await asyncio.to_thread(Manifest.parse, text)
        size = manifest.size + len(await asyncio.to_thread(lambda: manifest.packed))
        await make_room(room, (await room.require(address.bundle)).owner, size, output=address.bundle)
        await room.begin(address.bundle, manifest)
    return Response(status_code=204)


@router.put("/parts/{index}", status_code=204)
async def send_part(index: int, request: Request, address: Writing, room: Room) -> Response:
    """Take one part. Its size follows from the manifest."""
    bundle = await room.require(address.bundle)
    if not bundle.digest or not 0 <= index < part_count(bundle.size):
        raise Refusal(409, f"there is no part {index} of these files")
    if bundle.finished_at is not None:
        return Response(status_code=204)
    expected = part_size(bundle.size, index)
    async with room.received.borrow() as received:
        content = memoryview(received)[:expected]
        size = await read_body_into(request, content)
        if size != expected:
            raise Refusal(422, f"part {index} has {size} bytes instead of {expected}")
        await _require_checksum(request, content)
        async with room.sealed.borrow() as sealed:
            await room.store_part(bundle, index, content, sealed)
    return Response(status_code=204)


@router.get("/parts")
async def progress(address: Writing, room: Room) -> Progress:
    """Return what is missing of an upload, so that it can be resumed."""
    bundle = await room.require(address.bundle)
    missing = await room.content(bundle).missing(bundle.size)
    return Progress(
        size=bundle.size,
        parts=part_count(bundle.size),
        left=len(missing),
        missing=missing[:MOST_MISSING],
        finished=bundle.finished_at is not None,
    )


@router.put("/finish", status_code=204)
async def finish(address: Writing, room: Room) -> Response:
    """Say that all was sent."""
    await room.finish(address.bundle)
    return Response(status_code=204)


@router.get("/manifest")
async def read_manifest(request: Request, bundle: Readable, room: Room) -> Response:
    """Return the list of files, or a range of it."""
    return _ranged_text(request, bundle, (await room.manifest(bundle)).text, {})


@router.get("/sums")
async def read_checksums(request: Request, bundle: Readable, room: Room, *, zero: bool = False) -> Response:
    """Return the checksums of all files, or a range: as `sha256sum --check` reads them, or as `--zero` prints them."""
    content = await asyncio.to_thread(zero_checksums if zero else checksums, await room.manifest(bundle))
    return _ranged_text(request, bundle, content, {"Content-Type": "text/plain; charset=utf-8"})


@router.get("/data")
async def read_data(request: Request, bundle: Readable, room: Room) -> Response:
    """Return a range of all contents, which follow each other in the order of the manifest."""
    reader = room.content(bundle).reader()
    return _range_response(request, bundle.size, bundle.digest, reader.read, {})


@router.get("/file")
async def read_file(
    request: Request, bundle: Readable, room: Room, path: Annotated[str, Query(max_length=4000)]
) -> Response:
    """Return one file, or a range of it."""
    found = (await room.manifest(bundle)).find(checked_path(path))
    if found is None:
        raise Refusal(404, f"there is no file {path[:100]!r} among these")
    (entry, offset), reader = found, room.content(bundle).reader()

    def read(start: int, end: int) -> AsyncIterator[bytes]:
        return reader.read(offset + start, offset + end)

    name = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.rpartition('/')[2], safe='')}"}
    return _range_response(request, entry.size, entry.sha256, read, name)


@router.get("/tar")
async def read_tar(request: Request, bundle: Readable, room: Room) -> Response:
    """Return all files as a tar archive, or a range of it."""
    view = await asyncio.to_thread(TarView, await room.manifest(bundle))
    reader = room.content(bundle).reader()

    def read(start: int, end: int) -> AsyncIterator[bytes]:
        return view.read(reader, start, end)

    return _range_response(request, view.size, bundle.digest, read, _saved_as("files.tar"))


@router.get("/zip")
async def read_zip(bundle: Readable, room: Room) -> Response:
    """Return all files as a zip archive."""
    content = zip_of(await room.manifest(bundle), room.content(bundle).reader())
    return StreamingResponse(content, media_type="application/zip", headers=SAFE | _saved_as("files.zip"))


def _saved_as(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _ranged_text(request: Request, bundle: Bundle, text: bytes, more: dict[str, str]) -> Response:
    async def read(start: int, end: int) -> AsyncIterator[bytes]:
        yield text[start:end]

    return _range_response(request, len(text), bundle.digest, read, more)


def _range_response(
    request: Request, size: int, tag: str, read: Callable[[int, int], AsyncIterator[bytes]], more: dict[str, str]
) -> Response:
    """Return the bytes that the request's Range asks for, or all. Refuses with 416 a range beyond the end."""
    headers = {**SAFE, **more, "Accept-Ranges": "bytes", "ETag": f'"{tag}"'}
    start, end, status = 0, size, 200
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if found:
        start, end = int(found[1]), min(size, int(found[2] or size) + 1)
        if start >= end:
            raise Refusal(416, f"the range begins beyond the end: these are {size} bytes")
        headers["Content-Range"], status = f"bytes {start}-{end - 1}/{size}", 206
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(read(start, end), status, headers, media_type="application/octet-stream")


async def _checked_body(request: Request, limit: int) -> bytes:
    """Return the body. Refuses with 413 a larger body, and with 422 a body whose checksum differs from its header."""
    body = await read_body(request, limit)
    await _require_checksum(request, body)
    return body


async def _require_checksum(request: Request, body: bytes | memoryview) -> None:
    announced = request.headers.get(CHECKSUM_HEADER)
    if announced is None:
        return
    checksum = checksum_of if len(announced) == CHECKSUM_DIGITS else _sha256_of
    if await asyncio.to_thread(checksum, body) != announced.lower():
        raise Refusal(422, "the body arrived with another checksum than it was sent with")


def _sha256_of(body: bytes | memoryview) -> str:
    return hashlib.sha256(body).hexdigest()


async def _require_link(context: Context, address: Address) -> None:
    async with context.database.read() as session:
        link = await session.get(BundleLink, address.number)
    if link is None or link.revoked_at is not None or link.bundle != address.bundle:
        raise Refusal(404, "this address of files is wrong, or no longer good")
