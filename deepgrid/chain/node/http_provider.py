"""web3's connection to a node: one HTTP request per call or batch over persistent connections, with our own errors.

web3's AsyncHTTPProvider has three faults. A cancelled request may leave a lock held, and every later request of the
process then waits forever (web3.py issue 3867); our requests are cancelled whenever a task ends. It connects again for
each request. It logs the node's URL, whose path holds the access key of a hosted node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientResponseError, ClientSession, ClientTimeout, TCPConnector
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.types import RPCEndpoint, RPCRequest, RPCResponse

from deepgrid.chain.node.node_errors import Asked, NodeRefused, Request, making_sense
from deepgrid.errors import ChainError
from deepgrid.safe_http import is_loopback, trusting
from deepgrid.spans import span

LARGEST_BATCH = 100
DOOR_CLOSED = (401, 403, 404, 405)


class HttpProvider(AsyncJSONBaseProvider):
    """A node over HTTP, made inside a running event loop. Messages only name the host of its URL.

    It raises refusals itself, as NodeRefused, because web3's own errors do not always keep the revert data.
    """

    global_ccip_read_enabled = False  # else a contract could make us fetch any URL

    def __init__(self, url: str, timeout_s: float, asked: Asked, authorities: str | None = None) -> None:
        super().__init__()
        self._asked = asked
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._url = url
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting(authorities)) if authorities else None,
            timeout=ClientTimeout(total=timeout_s),
            headers={"Content-Type": "application/json"},
            raise_for_status=True,
            trust_env=not is_loopback(urlsplit(url).hostname or ""),  # a proxy must not see local requests
        )

    async def make_request(self, method: str, params: Any) -> RPCResponse:
        return (await self._reported([(method, params)]))[0]

    async def make_batch_request(self, requests: Sequence[Request]) -> list[RPCResponse]:
        parts = [requests[start : start + LARGEST_BATCH] for start in range(0, len(requests), LARGEST_BATCH)]
        return [answer for part in parts for answer in await self._reported(part)]

    async def disconnect(self) -> None:
        await self._session.close()

    async def _reported(self, requests: Sequence[Request]) -> list[RPCResponse]:
        try:
            with span(", ".join(dict.fromkeys(method for method, _ in requests))):
                answers = await self._exchange(requests)
        except ChainError as error:
            self._asked(len(requests), error)
            raise
        self._asked(len(requests), None)
        return answers

    async def _exchange(self, requests: Sequence[Request]) -> list[RPCResponse]:
        asked = [self.form_request(RPCEndpoint(method), params) for method, params in requests]
        many = len(asked) > 1
        answer = await self._post(self.encode_batch_request_dicts(asked) if many else self.encode_rpc_dict(asked[0]))
        with making_sense(requests[0][0]):
            by_id = {item.get("id"): item for item in (answer if isinstance(answer, list) else [answer])}
        return [self._checked(one, by_id) for one in asked]

    def _checked(self, asked: RPCRequest, answers: dict[Any, dict[str, Any]]) -> RPCResponse:
        # A node that refuses a whole batch sends one answer without an id.
        answer = answers.get(asked["id"]) or answers.get(None) or {}
        error = answer.get("error")
        if error is not None:
            if not isinstance(error, dict):
                raise ChainError(f"The chain's node at {self.host} answered with an error without content.")
            raise NodeRefused(asked["method"], error)
        if answer.get("id") != asked["id"]:
            raise ChainError(f"The chain's node at {self.host} left a request unanswered.")
        return {"jsonrpc": "2.0", "id": asked["id"], "result": answer.get("result")}

    async def _post(self, body: bytes) -> Any:
        if self._session.closed:
            raise ChainError(f"The connection to the chain's node at {self.host} was closed.", transient=False)
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                return self.decode_rpc_response(await response.read())
        except ClientResponseError as error:
            raise ChainError(
                f"The chain's node at {self.host} answered with HTTP status {error.status}.",
                transient=error.status not in DOOR_CLOSED,
            ) from None
        except TimeoutError:
            raise ChainError(f"The chain's node at {self.host} did not answer in time.") from None
        except ClientError:
            raise ChainError(
                f"The chain's node at {self.host} cannot be reached.", next_step="Check that the grid is up."
            ) from None
        except ValueError:
            raise ChainError(f"The chain's node at {self.host} answered something that is not JSON.") from None
