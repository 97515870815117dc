"""Deletes bundles: what is older than its owner's terms and, at the owner's quota, old inputs that no job needs.

A job needs what its definition names: an input by its number, or the output of another job. The output of a
job that is not over loses old contents only: its script may still send some.
"""

from __future__ import annotations

import logging

from sqlalchemy import ColumnElement, Select, delete, not_, select, update

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.services.files.bundles import Bundles
from deepgrid.services.files.tables import USED, Bundle, BundleLink, BundleUse, OutputUse
from deepgrid.services.storage.database import Definition, RevokedSession, Use

PAGE = 200
JUST_USED_S = 600  # after its last use, or its last part, an input stays although no job names it yet
MOST_FAILURES = 10  # in a row. Then the store is out, and each further deletion may take minutes to fail

logger = logging.getLogger(__name__)


async def clean_up_files(bundles: Bundles) -> None:
    """Run one round. What the store does not delete is left to the next one."""
    last, now, failures = "", bundles.clock(), 0
    async with bundles.database.write() as session:
        await session.execute(delete(BundleUse).where(BundleUse.definition_hash.not_in(_stored_definitions())))
        revoked = BundleLink.key_hash.in_(select(RevokedSession.key_hash))  # while the link was made
        await session.execute(update(BundleLink).where(revoked, BundleLink.revoked_at.is_(None)).values(revoked_at=now))
        await session.execute(delete(OutputUse).where(OutputUse.definition_hash.not_in(_stored_definitions())))
    live = select(Use.job_id).where(Use.definition_hash.in_(_stored_definitions()))
    while True:
        wanted = Bundle.id > last, _is_free() | ((Bundle.digest == "") & (Bundle.size + Bundle.list_bytes > 0))
        page = select(Bundle, Bundle.job_id.in_(live)).where(*wanted).order_by(Bundle.id)
        async with bundles.database.read() as session:
            rows = (await session.execute(page.limit(PAGE))).all()
        for bundle, is_live in rows:
            is_empty = not bundle.digest and not _room_of(bundle)
            if _is_over(bundles, bundle, now) and not (is_live and is_empty):
                unused = bundle.used_at + 1  # what was used since the page was read stays
                is_deleted = await _try_delete(bundles, bundle.id, keep_place=bool(is_live), unused_since=unused)
                failures = 0 if is_deleted else failures + 1
        if not rows or failures >= MOST_FAILURES:
            return
        last = rows[-1][0].id


async def delete_earlier(bundles: Bundles, job: Job) -> None:
    """Delete the outputs of a job's earlier claims."""
    earlier = Bundle.job_id == job.id, Bundle.owner == job.customer, Bundle.claimed_at < job.claimed_at
    async with bundles.database.read() as session:
        found = (await session.scalars(select(Bundle.id).where(*earlier))).all()
    for bundle in found:
        await _try_delete(bundles, bundle)


async def _try_delete(
    bundles: Bundles, bundle_id: str, *, keep_place: bool = False, unused_since: int | None = None
) -> bool:
    """Delete a bundle. Returns False if the store fails: a later clean-up tries again."""
    try:
        await bundles.delete(bundle_id, keep_place=keep_place, unused_since=unused_since)
    except ServiceError as error:
        logger.warning("the files %s were not deleted, trying again at the next clean-up: %s", bundle_id, error.message)
        return False
    return True


async def make_room(bundles: Bundles, owner: str, size: int, *, output: str = "", digest: str = "") -> None:
    """Delete the owner's oldest inputs that no job needs, whole or not, until `size` bytes fit into the quota.

    These are the new size of an output, or of the input with this digest. Deletes nothing if that would not be enough.
    """
    unused_since = bundles.clock() - JUST_USED_S
    is_same = Bundle.job_id.is_(None) & (Bundle.digest == digest)
    mine = Bundle.owner == owner, Bundle.id != output, not_(is_same)
    free = Bundle.job_id.is_(None), Bundle.used_at < unused_since, _is_free()
    async with bundles.database.read() as session:
        used = int(await session.scalar(select(USED).where(*mine)) or 0)
        excess = used + size - bundles.terms(owner).quota_bytes
        if excess <= 0:
            return
        inputs = (await session.scalars(select(Bundle).where(*mine, *free).order_by(Bundle.used_at))).all()
    if size > bundles.terms(owner).bundle_bytes or sum(map(_room_of, inputs)) < excess:
        return
    for one in inputs:
        if excess <= 0:
            return
        if await _try_delete(bundles, one.id, unused_since=unused_since):
            excess -= _room_of(one)


def _is_over(bundles: Bundles, bundle: Bundle, now: int) -> bool:
    terms = bundles.terms(bundle.owner)
    if _room_of(bundle) and not bundle.digest:  # its deletion failed half-way
        return True
    if bundle.finished_at is None and bundle.digest:
        return now - bundle.used_at > terms.unfinished_s
    return now - bundle.used_at > terms.keep_s


def _room_of(bundle: Bundle) -> int:
    return bundle.size + bundle.list_bytes


def _stored_definitions() -> Select[tuple[str]]:
    """Return the definitions whose jobs are not over."""
    return select(Definition.definition_hash).where(Definition.sealed.is_not(None))


def _is_free() -> ColumnElement[bool]:
    """Return the condition that no stored definition names a bundle."""
    inputs = select(BundleUse.bundle).where(BundleUse.definition_hash.in_(_stored_definitions()))
    outputs = select(OutputUse.job_id).where(OutputUse.definition_hash.in_(_stored_definitions()))
    return not_(Bundle.id.in_(inputs) | (Bundle.job_id.is_not(None) & Bundle.job_id.in_(outputs)))
