"""Appends output to logs as providers of earlier releases do: by offset alone."""

from __future__ import annotations

from deepgrid.services import messages
from deepgrid.services.client import ServicesClient, answers


async def push_log(client: ServicesClient, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
    """Append output of a job from `offset` on. Returns the offset that the service expects next.

    The service may have stored the data, had it already, or refused it because of a gap before it.
    """
    expected = offset
    step = messages.MAX_LOG_CHUNK_BYTES
    for start in range(0, max(len(data), 1), step):
        piece = data[start : start + step]
        last = start + step >= len(data)
        path = f"/v1/jobs/{job_id}/log?offset={offset + start}&final={'true' if final and last else 'false'}"
        answer = await client._send("POST", path, piece)
        if answer.status != 409:
            expected = answers.parse(messages.Appended, answer.read()).next_offset
            continue
        gap = answers.refusal_of(answer).next_offset
        if gap is None:
            raise answers.error_of(answer)
        return gap
    return expected
