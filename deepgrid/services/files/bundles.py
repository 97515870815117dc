"""The bundles of a service: created, filled, finished, read, shared, deleted.

Room is reserved when an upload is announced, in one transaction per owner: uploads at the same time cannot share the
same room. Nothing is received that was not announced, so no upload is endless.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.services.admission import Rate
from deepgrid.services.admission.limits import Buckets
from deepgrid.services.files.addresses import Address, Addresses, Use
from deepgrid.services.files.buffers import Buffers
from deepgrid.services.files.manifest import Manifest
from deepgrid.services.files.manifest_cache import ManifestCache
from deepgrid.services.files.parts import MANIFEST, OVERHEAD, BundleParts, Parts
from deepgrid.services.files.policy import FileTerms, PolicyFile
from deepgrid.services.files.tables import USED, Bundle, BundleLink, BundleUse
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.missing_rows import add_missing

PUT_FOR_S = GET_FOR_S = 24 * 3600
JOB_FOR_S = 366 * 24 * 3600  # longer than credits can buy; the chain ends a job's address with its claim
MOST_LINKS = 100  # of one job
LISTS_AT_ONCE = 2  # manifests that are received, each with up to 16 MiB
NOTED_EVERY_S = 60  # that parts of an upload arrive
AT_ONCE, SEALED_AT_ONCE = 4, 2  # parts that are received, and encrypted and stored
SEALED_BYTES = PART_BYTES + OVERHEAD
HELPS = (
    "delete the output of jobs with `dps job delete-files`, wait for the jobs that have your files as their input and,"
    " after an upload that was not completed, 10 minutes, or ask the operator for more"
)
NO_INPUT = "input: grid names no files that you have sent, or they were deleted; send them with --send"
REQUESTS = Rate(100, 2000)  # for the contents of one bundle


@dataclass
class Bundles:
    """All bundles of one service. `clock` gives unix seconds."""

    database: Database
    parts: Parts
    addresses: Addresses
    policy: PolicyFile
    clock: Callable[[], int]
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LISTS_AT_ONCE), init=False, repr=False)
    received: Buffers = field(default_factory=lambda: Buffers(AT_ONCE, PART_BYTES), init=False, repr=False)
    sealed: Buffers = field(default_factory=lambda: Buffers(SEALED_AT_ONCE, SEALED_BYTES), init=False, repr=False)
    requests: Buckets = field(default_factory=lambda: Buckets(REQUESTS), init=False, repr=False)
    _manifests: ManifestCache = field(default_factory=ManifestCache, init=False, repr=False)

    def terms(self, owner: str) -> FileTerms:
        return self.policy.current().of(owner)

    def address(self, use: Use, bundle: str, for_s: int, number: int = 0, claimed_at: int = 0) -> str:
        """Return the path of a new address."""
        return self.addresses.path(Address(use, bundle, self.clock() + for_s, number, claimed_at))

    async def announce(self, session: AsyncSession, owner: str, digest: str, size: int, files: int) -> Bundle:
        """Return the owner's input with this manifest: a stored one, or a new one with reserved room.

        Refuses with 503 a bundle that is being deleted.
        """
        known = select(Bundle).where(Bundle.owner == owner, Bundle.digest == digest, Bundle.job_id.is_(None))
        bundle = (await session.scalars(known.order_by(Bundle.begun_at).limit(1))).first()
        if bundle is None:
            bundle = self._new(owner, self.addresses.input_number(owner, digest))
            await self._reserve(session, bundle, digest, size, files)
            found = await session.get(Bundle, bundle.id)  # only now, as another process may have announced it
            if found is not None and not found.digest:
                raise Refusal(503, "the same files of an earlier time are being deleted", retry_after_s=1)
            if found is not None:
                return found
            session.add(bundle)
        bundle.used_at = self.clock()
        return bundle

    async def of_claim(self, session: AsyncSession, owner: str, job_id: int, claimed_at: int) -> Bundle:
        """Return the output of a claim. It is made when its provider asks for it."""
        known = select(Bundle).where(Bundle.job_id == job_id, Bundle.claimed_at == claimed_at, Bundle.owner == owner)
        bundle = (await session.scalars(known.limit(1))).first()
        if bundle is None:
            bundle = self._new(owner, secrets.token_hex(16))
            bundle.job_id, bundle.claimed_at = job_id, claimed_at
            session.add(bundle)
        return bundle

    def _new(self, owner: str, number: str) -> Bundle:
        now = self.clock()
        return Bundle(
            id=number, owner=owner, digest="", size=0, files=0, begun_at=now, used_at=now, folder=_new_folder()
        )

    async def begin(self, bundle_id: str, manifest: Manifest) -> None:
        """Take the manifest of an announced input, or announce an output by it. Refuses with 404, 409, 413 or 503."""
        self._require_small_files(await self.require(bundle_id), manifest)
        async with self.database.write() as session:
            bundle = await session.get(Bundle, bundle_id, with_for_update=True)
            if bundle is None:
                raise _no_files()
            if bundle.job_id is None and bundle.digest != manifest.digest:
                raise Refusal(409, "these are not the files that were announced")
            if not bundle.digest and bundle.size + bundle.list_bytes:
                raise Refusal(503, "the earlier files of this place are being deleted", retry_after_s=1)
            size, files = manifest.size, len(manifest.entries)
            if bundle.digest == manifest.digest and (bundle.size, bundle.files) != (size, files):
                raise Refusal(409, "the files have another size or number than was announced")
            if bundle.digest != manifest.digest:
                bundle.finished_at = None
            await self._reserve(session, bundle, manifest.digest, size, files, len(manifest.packed))
            bundle.used_at = self.clock()
        await self._parts(bundle).put(MANIFEST, manifest.packed)
        await self.parts.forget(bundle.folder, keep=manifest.digest)
        await self._require_present(bundle)

    def _require_small_files(self, bundle: Bundle, manifest: Manifest) -> None:
        most = self.terms(bundle.owner).file_bytes
        largest = max((entry.size for entry in manifest.entries), default=0)
        if largest > most:
            raise Refusal(413, f"a file has {largest:,} bytes; at most {most:,} are kept")

    async def _reserve(
        self, session: AsyncSession, bundle: Bundle, digest: str, size: int, files: int, list_bytes: int = 0
    ) -> None:
        """Count the files and their list against the owner's quota. Refuses with 413 above a limit."""
        policy, terms = self.policy.current(), self.terms(bundle.owner)
        if files > terms.files:
            raise Refusal(413, f"these are {files:,} files; at most {terms.files:,} are kept of one input or output")
        if size > terms.bundle_bytes:
            raise Refusal(
                413, f"the files have {size:,} bytes; at most {terms.bundle_bytes:,} are kept of one input or output"
            )
        if self.database.is_shared:  # other processes of the services wait here; SQLite has one writer anyway
            await session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": 0x66696C65})
        others = select(USED).where(Bundle.id != bundle.id)
        used = int(await session.scalar(others.where(Bundle.owner == bundle.owner)) or 0)
        room = size + list_bytes
        if used + room > terms.quota_bytes:
            free = f"{max(0, terms.quota_bytes - used):,} of your {terms.quota_bytes:,} bytes are free"
            sentence = f"the files need {room:,} bytes with their list, and {free}"
            raise Refusal(413, f"{sentence}; {HELPS}")
        if policy.all_bytes is not None and int(await session.scalar(others) or 0) + room > policy.all_bytes:
            raise Refusal(507, "the grid has no room for more files now")
        bundle.digest, bundle.size, bundle.files, bundle.list_bytes = digest, size, files, list_bytes

    async def store_part(self, bundle: Bundle, index: int, content: memoryview, buffer: bytearray) -> None:
        """Store a part. Refuses with 409 if its bundle is gone meanwhile: nothing stays that counts for no quota."""
        await self._parts(bundle).put(index, content, buffer)
        await self._require_present(bundle)
        if bundle.used_at < self.clock() - NOTED_EVERY_S:
            await self.touch(bundle.id)

    async def _require_present(self, bundle: Bundle) -> None:
        async with self.database.read() as session:
            found = await session.get(Bundle, bundle.id)
        is_same = found is not None and found.folder == bundle.folder
        if found is None or not is_same or found.digest != bundle.digest:
            await self.parts.forget(bundle.folder, keep=found.digest if found and is_same else "")
            raise Refusal(409, "these files were deleted, or replaced by others, meanwhile")

    async def finish(self, bundle_id: str) -> None:
        """Say that all of a bundle was sent. Refuses with 409 if a part is missing."""
        bundle = await self.require(bundle_id)
        parts = self._parts(bundle)
        stored = await parts.sizes()
        missing = await parts.missing(bundle.size)
        if not bundle.digest or MANIFEST not in stored or missing:
            raise Refusal(409, f"{len(missing)} parts of the files are missing")
        async with self.database.write() as session:
            found = await session.get(Bundle, bundle_id, with_for_update=True)
            if found is None or (found.folder, found.digest) != (bundle.folder, bundle.digest):
                raise Refusal(409, "another upload to the same place began meanwhile")
            found.finished_at = found.used_at = self.clock()

    async def require(self, bundle_id: str, *, finished: bool = False) -> Bundle:
        """Return a bundle. Refuses with 404. With `finished`, it also refuses an unfinished bundle."""
        async with self.database.read() as session:
            bundle = await session.get(Bundle, bundle_id)
        if bundle is None or (finished and bundle.finished_at is None):
            raise _no_files()
        return bundle

    async def manifest(self, bundle: Bundle) -> Manifest:
        """Return the manifest of a bundle. Refuses with 409 before it was sent. Raises ServiceError."""
        if not bundle.digest:
            raise Refusal(409, "the list of files was not sent yet")
        return await self._manifests.get((bundle.id, bundle.digest), lambda: self._parts(bundle).get(MANIFEST))

    def _parts(self, bundle: Bundle) -> BundleParts:
        return self.parts.of(bundle.folder, bundle.digest)

    def content(self, bundle: Bundle) -> BundleParts:
        """Return the encrypted parts of a bundle."""
        return self._parts(bundle)

    async def output_of(self, job: Job) -> Bundle:
        """Return the whole output of the job's present or last claim. Refuses with 404.

        What a provider sent before it gave the job back is not the job's output.
        """
        of_claim = select(Bundle).where(Bundle.job_id == job.id, Bundle.claimed_at == job.claimed_at)
        wanted = of_claim.where(Bundle.owner == job.customer, Bundle.finished_at.is_not(None))
        async with self.database.read() as session:
            bundle = (await session.scalars(wanted.limit(1))).first()
        if bundle is None:
            raise Refusal(404, f"the grid has no files of job {job.id}")
        return bundle

    async def touch(self, bundle_id: str) -> None:
        """Let the time that a bundle is kept begin again."""
        async with self.database.write() as session:
            await session.execute(update(Bundle).where(Bundle.id == bundle_id).values(used_at=self.clock()))

    async def hold(self, session: AsyncSession, definition_hash: str, bundle_id: str, owner: str) -> None:
        """Keep an input until the jobs of this definition are over. Refuses with 422 what its owner lacks."""
        bundle = await session.get(Bundle, bundle_id, with_for_update=True)
        if bundle is None or bundle.finished_at is None or bundle.owner != owner:
            raise Refusal(422, NO_INPUT)
        bundle.used_at = self.clock()
        await add_missing(session, BundleUse, [{"definition_hash": definition_hash, "bundle": bundle_id}])

    async def delete_of(self, job: Job) -> int:
        """Delete the outputs of a job with their links. Returns how many there were. Raises ServiceError.

        A job that runs can still send its output.
        """
        wanted = select(Bundle).where(Bundle.job_id == job.id, Bundle.owner == job.customer)
        async with self.database.read() as session:
            found = (await session.scalars(wanted)).all()
        for bundle in found:
            await self.delete(bundle.id, keep_place=job.status.hot and bundle.claimed_at == job.claimed_at)
        return len(found)

    async def delete(self, bundle_id: str, *, keep_place: bool = False, unused_since: int | None = None) -> None:
        """Delete a bundle: first its contents, so that a failure leaves its row to the next attempt.

        With `keep_place`, its address takes another upload. With `unused_since`, a bundle in use since then stays.
        Without a digest, the bundle accepts no part that is in flight. A bundle that is created again meanwhile stays:
        its parts are in another folder.
        """
        emptied = update(Bundle).where(Bundle.id == bundle_id).values(digest="", finished_at=None)
        if unused_since is not None:
            emptied = emptied.where(Bundle.used_at < unused_since)
        async with self.database.write() as session:
            folder = await session.scalar(emptied.returning(Bundle.folder))
            if folder is None:
                return
            await session.execute(delete(BundleLink).where(BundleLink.bundle == bundle_id))
            await session.execute(delete(BundleUse).where(BundleUse.bundle == bundle_id))
        await self.parts.forget(folder)
        kept = update(Bundle).values(size=0, files=0, list_bytes=0, folder=_new_folder())
        change = kept if keep_place else delete(Bundle)
        async with self.database.write() as session:
            await session.execute(change.where(Bundle.id == bundle_id, Bundle.folder == folder, Bundle.digest == ""))


def _new_folder() -> str:
    return secrets.token_hex(16)


def _no_files() -> Refusal:
    return Refusal(404, "the grid has these files no more, or not yet")
