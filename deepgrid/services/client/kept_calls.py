"""Calls about what the services keep of jobs: files, tags, notes, places in sweeps, and what they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from urllib.parse import urlencode

from deepgrid.billing.use_samples import UseSample
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.services.client import answers
from deepgrid.services.kept_messages import MOST_MARKS_AT_ONCE, JobMark, KeptFile, MarkBatch, MarkPage
from deepgrid.services.messages import JobUse, Message, UseBatch, UseOverTime


class KeptCalls:
    """Part of `ServicesClient`, which sends the calls."""

    async def call(self, method: str, path: str, body: Message | None = None) -> bytes:
        raise NotImplementedError

    async def kept_file(self, job_id: int) -> KeptFile:
        """Return the file of this account's job, with masked secrets."""
        return answers.parse(KeptFile, await self.call("GET", f"/v1/jobs/{job_id}/file"))

    async def write_marks(self, marks: Sequence[JobMark]) -> None:
        """Replace the marks of these jobs, whose definitions this account has stored."""
        for start in range(0, len(marks), MOST_MARKS_AT_ONCE):
            await self.call("PUT", "/v1/marks", MarkBatch(marks=list(marks[start : start + MOST_MARKS_AT_ONCE])))

    async def marks(self, *, sweep: str | None = None, tags: Sequence[str] = ()) -> dict[str, JobMark]:
        """Return the marks of this account's jobs by the hash of their definition, filtered by sweep or tags."""
        found: dict[str, JobMark] = {}
        given = [("tag", tag) for tag in tags] + ([("sweep", sweep)] if sweep else [])
        after: str | None = ""
        while after is not None:
            query = urlencode([*given, ("after", after)] if after else given)
            try:
                answer = await self.call("GET", f"/v1/marks?{query}" if query else "/v1/marks")
            except NotFound:
                return found
            page = answers.parse(MarkPage, answer)
            found |= {one.definition_hash: one for one in page.marks}
            if page.after is not None and page.after <= after:
                raise answers.nonsense()
            after = page.after
        return found

    async def send_uses(self, samples: Mapping[JobKey, UseSample]) -> None:
        """Add a sample to each of these running claims of this provider, at most MAX_USES_AT_ONCE."""
        uses = [
            JobUse(job_id=key.job_id, claimed_at=key.claimed_at, **asdict(sample)) for key, sample in samples.items()
        ]
        await self.call("POST", "/v1/uses", UseBatch(uses=uses))

    async def job_use(self, job_id: int) -> tuple[UseSample, ...]:
        """Return what a job used over time. For its customer, its provider and the operator. NotFound if not known."""
        found = answers.parse(UseOverTime, await self.call("GET", f"/v1/jobs/{job_id}/use"))
        if not found.samples:
            raise NotFound(f"What job {job_id} uses over time is not known.")
        return tuple(UseSample(**one.model_dump()) for one in found.samples)
