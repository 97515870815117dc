"""The services as customers, providers and the operator call them.

Every call is signed afresh. Raises ServiceError (transient) when a service cannot be reached or
failed, AccessDenied when it refuses, NotFound for what it does not have, InputError for what it
finds wrong in the request.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

import httpx
from coincurve import PrivateKey
from eth_account.signers.local import LocalAccount
from pydantic import ValidationError

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError, InputError, ServiceError
from deepgrid.secure_url import fault_of, is_loopback
from deepgrid.services import messages
from deepgrid.services.answers import Answer, asked_pause_s, checked, error_of, nonsense, opened, parsed, refusal_of
from deepgrid.services.messages import Message, Notice, Release
from deepgrid.services.protocol import Domain, sign
from deepgrid.workflow import Definition, canonical, hash_definition

__all__ = ["LogChunk", "Notice", "Release", "ServicesClient"]

logger = logging.getLogger(__name__)

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
CLOCK_SLACK_S = 30.0
MOST_AHEAD_S = 86400.0  # a service in wrong hands gets no signatures that are good for longer
UPLOADS_AT_ONCE = 16
UPLOAD_PATIENCE_S = 300.0  # while the service asks to try again later


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Output of the claim made at `claimed_at`, up to `next_offset`; nothing follows if `final`."""

    data: bytes = field(repr=False)
    next_offset: int
    final: bool
    claimed_at: int


class ServicesClient:
    """One account's access to the services of one grid; closed by `async with` or `close`."""

    def __init__(
        self,
        base_url: str,
        account: LocalAccount,
        chain_id: int,
        verifying_contract: str,
        *,
        timeout_s: float = TIMEOUT_S,
        upload_patience_s: float = UPLOAD_PATIENCE_S,
    ) -> None:
        """Raises ConfigurationError for a URL that would send secrets in clear text."""
        self._base = base_url.rstrip("/")
        self._account = account
        self._domain = Domain(chain_id, verifying_contract)
        if fault := fault_of(base_url):
            raise ConfigurationError(
                f"The services' URL {base_url.partition('@')[2] or base_url} {fault}.",
                next_step="Correct the URL in the address book or the provider block.",
            )
        where = urlsplit(base_url)
        at_home = is_loopback(where.hostname or "")  # a proxy of the environment has no business there
        # SSL_CERT_FILE may name an authority of one's own; to read certificates for http is 0.1 s for nothing
        verify = httpx.create_ssl_context() if where.scheme == "https" else False
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)
        self._upload_patience_s = upload_patience_s
        self._http = httpx.AsyncClient(timeout=timeout_s, trust_env=not at_home, verify=verify)
        self._ahead_s = 0.0  # of our clock, the service's

    @classmethod
    def of(cls, book: AddressBook, account: LocalAccount, url: str = "") -> Self:
        """The services of the grid of `book`, at `url` if that differs from here."""
        return cls(url or book.definitions_url, account, book.chain_id, book.meta_scheduler)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def health(self) -> None:
        """Raise ServiceError when the service does not answer or its store is down, ConfigurationError when it is
        that of another grid."""
        answer = parsed(messages.Health, await self._call("GET", "/v1/health"))
        if (answer.chain_id, answer.meta_scheduler.lower()) != (
            self._domain.chain_id,
            self._domain.verifying_contract.lower(),
        ):
            raise ConfigurationError(
                f"The services at {self._base} are those of another grid, on chain {answer.chain_id}.",
                next_step="Correct the services' URL in the address book or the provider block.",
            )

    async def upload(self, job: Definition) -> str:
        """Store a definition; returns its hash. The salt, and so the hash, is new each time.

        Where uploads wait for one another, the upload is tried again for some minutes.
        """
        salt, content = secrets.token_bytes(32), canonical(job)
        definition_hash = hash_definition(salt, content)
        body = messages.Upload(salt=salt.hex(), definition=content.decode())
        async with self._uploads:
            await self._put_patiently(f"/v1/definitions/{definition_hash}", body.model_dump_json().encode())
        return definition_hash

    async def _put_patiently(self, path: str, body: bytes) -> None:
        """Repeat the request while the service says when to come back."""
        deadline = time.monotonic() + self._upload_patience_s
        while True:
            answer = await self._send("PUT", path, body)
            pause_s = asked_pause_s(answer)
            if pause_s is None or time.monotonic() + pause_s > deadline:
                checked(answer)
                return
            await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))  # not all at the same time

    async def fetch_definition(self, job_id: int, definition_hash: str) -> Definition:
        """The definition of a job that this account has claimed, verified against the hash on chain.

        Raises AccessDenied also when the service answers with another definition than the hash names.
        """
        key = PrivateKey()
        try:
            body = messages.ReleaseRequest(location_hash=definition_hash, public_key=key.public_key.format().hex())
        except ValidationError:
            raise InputError(f"Job {job_id} names no definition of this grid's kind.") from None
        answer = await self._call("POST", f"/v1/jobs/{job_id}/definition", body)
        sealed = parsed(messages.Released, answer).sealed
        return opened(key.secret, sealed, definition_hash)

    async def releases(self, definition_hash: str) -> list[Release]:
        """Who fetched this account's definition, in order."""
        return parsed(
            messages.Releases, await self._call("GET", f"/v1/definitions/{definition_hash}/releases")
        ).releases

    async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
        """Append output of a job from `offset` on; returns the offset that the service expects next.

        That is where it stands, whether it took the data, had it already, or saw a gap before it.
        """
        expected = offset
        step = messages.MAX_LOG_CHUNK_BYTES
        for start in range(0, max(len(data), 1), step):
            piece = data[start : start + step]
            last = start + step >= len(data)
            path = f"/v1/jobs/{job_id}/log?offset={offset + start}&final={'true' if final and last else 'false'}"
            answer = await self._send("POST", path, piece)
            if answer.status != 409:
                expected = parsed(messages.Appended, checked(answer)).next_offset
                continue
            gap = refusal_of(answer).next_offset
            if gap is None:
                raise error_of(answer)
            return gap
        return expected

    async def read_log(self, job_id: int, offset: int = 0, *, wait_s: float = 0.0) -> LogChunk:
        """Output of this account's job from `offset` on; waits up to `wait_s` (25 at most) for some.

        When another provider claims the job, `claimed_at` changes and the output begins anew at offset 0.
        """
        path = f"/v1/jobs/{job_id}/log?offset={offset}&wait={wait_s:g}"
        answer = await self._send("GET", path, b"")
        data, headers = checked(answer), answer.headers
        try:
            return LogChunk(
                data, int(headers["X-Next-Offset"]), headers["X-Final"] == "true", int(headers["X-Claimed-At"])
            )
        except (KeyError, ValueError):
            raise nonsense() from None

    async def post_notice(self, job_id: int, kind: str, text: str) -> None:
        """Publish a remark on a job's scheduling: one line, cut where it is too long."""
        try:
            body = messages.NoticeText(kind=kind, text=text[: messages.MAX_NOTICE_CHARS])
        except ValidationError:
            raise InputError("A notice needs a kind (one word) and a text.") from None
        await self._call("POST", f"/v1/jobs/{job_id}/notices", body)

    async def notices(self, job_id: int) -> list[Notice]:
        """What was said on a job's scheduling, oldest first."""
        return parsed(messages.Notices, await self._call("GET", f"/v1/jobs/{job_id}/notices")).notices

    async def _call(self, method: str, path: str, body: Message | None = None) -> bytes:
        return checked(await self._send(method, path, body.model_dump_json(by_alias=True).encode() if body else b""))

    async def _send(self, method: str, path: str, body: bytes) -> Answer:
        """One signed request, and another one by the service's clock if ours was what it refused."""
        signed_ahead_s = self._ahead_s
        answer = await self._exchange(method, path, body)
        if answer.status == 401 and await self._is_clock_off(signed_ahead_s):
            answer = await self._exchange(method, path, body)
        return answer

    async def _is_clock_off(self, signed_ahead_s: float) -> bool:
        """Whether a request signed so far ahead of our clock had a wrong time; the service's is taken over then.

        False also when it is too far off to be believed. Requests side by side may find the same, each for itself.
        """
        answer = parsed(messages.Health, checked(await self._exchange("GET", "/v1/health", b"")))
        ahead_s = answer.time - time.time()
        if abs(ahead_s - signed_ahead_s) < CLOCK_SLACK_S or abs(ahead_s) > MOST_AHEAD_S:
            return False
        if abs(ahead_s - self._ahead_s) >= CLOCK_SLACK_S:
            logger.warning("this machine's clock is %.0f s off that of the grid's services", -ahead_s)
        self._ahead_s = ahead_s
        return True

    async def _exchange(self, method: str, path: str, body: bytes) -> Answer:
        """The answer is read up to a bound, as the service may be in wrong hands."""
        headers = sign(self._account, self._domain, method, path, body, int(time.time() + self._ahead_s))
        try:
            async with self._http.stream(method, self._base + path, content=body, headers=headers) as response:
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > MAX_ANSWER_BYTES:
                        raise nonsense()
        except httpx.HTTPError as error:
            raise ServiceError(f"The grid's services at {self._base} do not answer ({type(error).__name__}).") from None
        return Answer(response.status_code, response.headers, bytes(content))
