"""The client of the services, for customers, providers and the operator.

Every request gets a fresh signature. All calls raise ServiceError (transient) when a service cannot be reached or
fails, AccessDenied when it denies access, NotFound when it does not have the object, and InputError when the
request is wrong.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import httpx
from coincurve import PrivateKey
from pydantic import ValidationError

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.eth_accounts import LocalAccount
from deepgrid.errors import ConfigurationError, InputError, NotFound, ServiceError
from deepgrid.lifecycle.definition_hash import hash_definition
from deepgrid.safe_http import UNCOMPRESSED, ExcessiveAnswer, fault_of, is_loopback, read_answer, tls_of
from deepgrid.services import messages, protocol_version
from deepgrid.services.client import answers
from deepgrid.services.client.answers import Answer, LogChunk, SlowAnswer
from deepgrid.services.client.kept_calls import KeptCalls
from deepgrid.services.messages import LogPosition, Message, Notice, Release
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.signing.session_keys import Session
from deepgrid.services.signing.signers import Signer, WalletSigner

if TYPE_CHECKING:
    from deepgrid.lifecycle.job import Job
    from deepgrid.services.tunnels.secure_channel import OpeningTunnel
    from deepgrid.workflow import Definition

__all__ = ["LogChunk", "Notice", "Release", "ServicesClient"]

logger = logging.getLogger(__name__)

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
CLOCK_SLACK_S = 30.0
MOST_AHEAD_S = 86400.0  # a hostile service gets no signatures that are valid for longer
MOST_CLOCK_LOOKS = 3
UPLOADS_AT_ONCE = 16
UPLOAD_PATIENCE_S = 300.0  # how long an upload is retried while the service asks for retries


class ServicesClient(KeptCalls):
    """One account's access to the services of one grid. Close it by `async with` or `close`."""

    def __init__(
        self,
        base_url: str,
        account: LocalAccount | Signer,
        chain_id: int,
        verifying_contract: str,
        *,
        timeout_s: float = TIMEOUT_S,
        upload_patience_s: float = UPLOAD_PATIENCE_S,
        authorities: str | None = None,
    ) -> None:
        """Requests are signed by the wallet `account`, or by another signer such as a `SessionKey`.

        Raises ConfigurationError for a URL that would send secrets in clear text.
        """
        self._base = base_url.rstrip("/")
        self._signer: Signer = WalletSigner(account) if isinstance(account, LocalAccount) else account
        self.domain = Domain(chain_id, verifying_contract)
        if fault := fault_of(base_url):
            raise ConfigurationError(
                f"The services' URL {base_url.partition('@')[2] or base_url} {fault}.",
                next_step="Correct the URL in the address book or the provider block.",
            )
        where = urlsplit(base_url)
        at_home = is_loopback(where.hostname or "")  # do not use a proxy of the environment there
        verify = tls_of(base_url, authorities)
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)
        self._upload_patience_s = upload_patience_s
        self._http = httpx.AsyncClient(headers=UNCOMPRESSED, timeout=timeout_s, trust_env=not at_home, verify=verify)
        self._ahead_s = 0.0  # how far the service's clock is ahead of ours

    @classmethod
    def of(cls, book: AddressBook, account: LocalAccount | Signer, url: str = "") -> Self:
        """Return the services of the grid of `book`. `url` overrides the address in the book."""
        where = url or book.definitions_url
        return cls(where, account, book.chain_id, book.meta_scheduler, authorities=book.authorities)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    @property
    def base_url(self) -> str:
        """URL of the services, without a '/' at its end."""
        return self._base

    async def health(self) -> None:
        """Raise ServiceError when the service or its store does not answer, ConfigurationError when it serves
        another grid or speaks another version of the protocol."""
        whole = await self._send("GET", "/v1/health", b"")
        protocol_version.check(whole.headers.get(protocol_version.HEADER))
        answer = answers.parse(messages.Health, whole.read())
        if (answer.chain_id, answer.meta_scheduler.lower()) != (
            self.domain.chain_id,
            self.domain.verifying_contract.lower(),
        ):
            raise ConfigurationError(
                f"The services at {self._base} serve another grid, on chain {answer.chain_id}.",
                next_step="Correct the services' URL in the address book or the provider block.",
            )

    async def upload(self, job: Definition, salt: bytes | None = None) -> str:
        """Store a definition; returns its hash, which is new each time unless a `salt` of 32 bytes is given.

        The upload is retried for some minutes while the service is busy with other uploads.
        """
        from deepgrid.workflow import canonical  # here: the language takes 0.2 s to load

        salt, content = salt or secrets.token_bytes(32), canonical(job)
        definition_hash = hash_definition(salt, content)
        body = messages.Upload(salt=salt.hex(), definition=content.decode())
        async with self._uploads:
            await self._put_patiently(f"/v1/definitions/{definition_hash}", body.model_dump_json().encode())
        return definition_hash

    async def _put_patiently(self, path: str, body: bytes) -> None:
        """Retry the request while the service asks for a retry, or took it and has not finished its check."""
        deadline = time.monotonic() + self._upload_patience_s
        while True:
            try:
                answer = await self._send("PUT", path, body)
            except SlowAnswer:
                if time.monotonic() > deadline:
                    raise
                continue
            pause_s = answers.asked_pause_s(answer)
            if pause_s is None or time.monotonic() + pause_s > deadline:
                answer.read()
                return
            await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))  # jitter

    async def fetch_definition(self, job_id: int, definition_hash: str) -> Definition:
        """Return the definition of a job that this account has claimed, verified against the hash on chain.

        Raises AccessDenied also when the service answers with a definition that has another hash, and NotFound also
        when the job names none in this grid's format.
        """
        key = PrivateKey()
        try:
            body = messages.ReleaseRequest(location_hash=definition_hash, public_key=key.public_key.format().hex())
        except ValidationError:
            raise NotFound(f"Job {job_id} names no definition of this grid's format.") from None
        answer = await self.call("POST", f"/v1/jobs/{job_id}/definition", body)
        sealed = answers.parse(messages.Released, answer).sealed
        return answers.open_definition(key.secret, sealed, definition_hash)

    async def releases(self, definition_hash: str) -> list[Release]:
        """Return the releases of this account's definition, in order."""
        return answers.parse(
            messages.Releases, await self.call("GET", f"/v1/definitions/{definition_hash}/releases")
        ).releases

    async def ship_log(
        self, job_id: int, claimed_at: int, at: LogPosition, data: bytes, after: LogPosition, *,
        pending: int = 0, final: bool = False,
    ) -> LogPosition:  # fmt: skip
        """Append `data`, at most 1 MiB, to the log of one claim, if the log ends at `at`.

        Returns the position to continue from: `after` if the data was stored, otherwise the end of the log.
        """
        place = f"offset={at.offset}&source={after.source}&left_out={after.left_out}&pending={pending}"
        end = f"final={'true' if final else 'false'}&claimed_at={claimed_at}"
        answer = await self._send("POST", f"/v1/jobs/{job_id}/log?{place}&{end}", data)
        return answers.log_position(answer)

    async def read_log(self, job_id: int, offset: int = 0, *, wait_s: float = 0.0) -> LogChunk:
        """Return the output of this account's job from `offset` on. Waits up to `wait_s` (at most 25) for new output.

        A negative `offset` counts bytes from the present end of the log: -65536 reads the last 64 KiB. The chunk's own
        `offset` is the position of its first byte. One chunk has at most 1 MiB; continue at `next_offset`.
        When another provider claims the job, `claimed_at` changes and the output begins again at offset 0.
        """
        path = f"/v1/jobs/{job_id}/log?offset={offset}&wait={wait_s:g}"
        return answers.log_chunk(await self._send("GET", path, b""))

    async def post_notice(self, job_id: int, kind: str, text: str) -> None:
        """Publish a remark on a job's scheduling, on one line. A long text is truncated."""
        try:
            body = messages.NoticeText(kind=kind, text=text[: messages.MAX_NOTICE_CHARS])
        except ValidationError:
            raise InputError("A notice needs a kind (one word) and a text.") from None
        await self.call("POST", f"/v1/jobs/{job_id}/notices", body)

    async def post_notices(self, notices: Sequence[tuple[int, str, str]]) -> None:
        """Publish remarks (job, kind, text) on many jobs, all or none. For the meta-scheduler's key.

        At most MAX_NOTICES_AT_ONCE; a long text is truncated.
        """
        try:
            body = messages.NoticeBatch(
                notices=[
                    messages.JobNotice(job_id=job_id, kind=kind, text=text[: messages.MAX_NOTICE_CHARS])
                    for job_id, kind, text in notices
                ]
            )
        except ValidationError:
            raise InputError(
                f"A batch has 1 to {messages.MAX_NOTICES_AT_ONCE} notices: a job, a kind (one word) and a text each."
            ) from None
        await self.call("POST", "/v1/notices", body)

    async def notices(self, job_id: int) -> list[Notice]:
        """Return the remarks on a job's scheduling, oldest first."""
        return answers.parse(messages.Notices, await self.call("GET", f"/v1/jobs/{job_id}/notices")).notices

    async def queue_place(self, job_id: int) -> messages.QueueEntry:
        """Return the place of a job; without a status if it is over or too new."""
        return answers.parse(messages.QueueEntry, await self.call("GET", f"/v1/jobs/{job_id}/queue"))

    async def send_receipt(self, job_id: int, receipt: bytes) -> None:
        """Store the signed receipt of a job of this provider. InputError if the services keep another one already."""
        (await self._send("PUT", f"/v1/jobs/{job_id}/receipt", receipt)).read()

    async def receipt(self, job_id: int) -> bytes:
        """Return the stored receipt of a job, not verified. For its customer, its provider and the operator."""
        return (await self._send("GET", f"/v1/jobs/{job_id}/receipt", b"")).read()

    def open_tunnel(self, job: Job) -> OpeningTunnel:
        """Return a signed opening of a tunnel into a running job of this account."""
        from deepgrid.services.tunnels.secure_channel import OpeningTunnel  # here: only a few commands need it

        return OpeningTunnel.to(job, self._signer, self.domain, int(time.time() + self._ahead_s))

    async def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a signed request, and return the content of the answer."""
        return (await self._send(method, path, body)).read()

    async def revoke(self, session: Session) -> None:
        """End a session key of this wallet before its time. A session key may end itself."""
        await self.call("POST", "/v1/sessions/revoke", messages.Revocation(session=session.header()))

    async def call(self, method: str, path: str, body: Message | None = None) -> bytes:
        """Send a signed request with a message, and return the content of its answer."""
        content = body.model_dump_json(by_alias=True).encode() if body else b""
        return (await self._send(method, path, content)).read()

    async def _send(self, method: str, path: str, body: bytes) -> Answer:
        """Send a signed request, again with the service's time while it refuses ours: clocks change meanwhile."""
        for _ in range(MOST_CLOCK_LOOKS):
            signed_ahead_s = self._ahead_s
            answer = await self._exchange(method, path, body)
            if answer.status != 401 or not await self._is_clock_off(signed_ahead_s):
                break
        return answer

    async def _is_clock_off(self, signed_ahead_s: float) -> bool:
        """Return whether a request signed this far ahead of our clock had a wrong time. If so, use the service's clock.

        False also when the service's time is too far off to be plausible. Concurrent requests may each find this.
        """
        answer = answers.parse(messages.Health, (await self._exchange("GET", "/v1/health", b"")).read())
        ahead_s = answer.time - time.time()
        if abs(ahead_s - signed_ahead_s) < CLOCK_SLACK_S or abs(ahead_s) > MOST_AHEAD_S:
            return False
        if abs(ahead_s - self._ahead_s) >= CLOCK_SLACK_S:
            logger.warning(
                "this machine's clock differs by %.0f s from the clock of the grid's services; using theirs", -ahead_s
            )
        self._ahead_s = ahead_s
        return True

    async def _exchange(self, method: str, path: str, body: bytes) -> Answer:
        """Send one request. The size of the answer is limited, because the service may be hostile."""
        headers = self._signer.headers(self.domain, method, path, body, int(time.time() + self._ahead_s))
        try:
            async with self._http.stream(method, self._base + path, content=body, headers=headers) as response:
                content = await read_answer(response, MAX_ANSWER_BYTES)
        except ExcessiveAnswer:
            raise answers.nonsense() from None
        except httpx.HTTPError as error:
            kind = SlowAnswer if isinstance(error, httpx.ReadTimeout) else ServiceError
            why = " in time" if isinstance(error, httpx.TimeoutException) else ""
            raise kind(f"The grid's services at {self._base} do not answer{why}.") from None
        return Answer(response.status_code, response.headers, content)
