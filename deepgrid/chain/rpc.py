"""JSON-RPC over HTTP: one pooled connection, batches, and errors of our own classes.

web3's HTTP provider opens a new TCP connection for every request and its calls ask the node up to
nine questions a transaction; everything here is one request a call or a batch.
No message repeats the node's URL beyond its host: paths of hosted nodes hold access keys.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx

from deepgrid.errors import ChainError

REQUEST_TIMEOUT_S = 15.0
LARGEST_BATCH = 100
BUSY_CODES = (-32005, -32016, -32097)  # rate and resource limits of the common nodes
DOOR_CLOSED = (401, 403, 404, 405)
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Request: TypeAlias = tuple[str, Sequence[Any]]


class NodeRefused(ChainError):
    """The node answered with an error of its own: `code`, `reason`, and a call's revert `data` if any."""

    transient = False

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        self.code = int(error.get("code") or 0)
        self.reason = str(error.get("message", ""))[:300]
        self.data = _revert_data(error.get("data"))
        busy = self.code in BUSY_CODES or "rate limit" in self.reason.lower()
        super().__init__(f"The chain's node refused {method}: {self.reason}.", transient=busy)


@contextmanager
def making_sense(of: str) -> Iterator[None]:
    """Turns the stumbling over an answer of an unexpected shape into a ChainError (transient)."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise ChainError(f"The chain's node answered nonsense when asked for {of}.") from None


class Rpc:
    """A node. Raises ChainError (transient) when it cannot be reached or answers nonsense."""

    def __init__(self, url: str, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._url = url
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        at_home = urlsplit(url).hostname in LOOPBACK  # a proxy of the environment has no business there
        secure = urlsplit(url).scheme == "https"  # else reading all certificates (60 ms) would be for nothing
        self._http = httpx.AsyncClient(timeout=timeout_s, trust_env=not at_home, verify=secure)
        self._ids = itertools.count(1)

    async def call(self, method: str, *params: Any) -> Any:
        """Result of one request. Raises NodeRefused for an error of the node itself."""
        answers = await self._exchange([(method, params)])
        return _result(method, answers[0])

    async def batch(self, requests: Sequence[Request]) -> list[Any]:
        """Results of many requests in order; the first refused one raises NodeRefused."""
        results: list[Any] = []
        for start in range(0, len(requests), LARGEST_BATCH):
            part = requests[start : start + LARGEST_BATCH]
            answers = await self._exchange(part)
            results += [_result(method, answer) for (method, _), answer in zip(part, answers, strict=True)]
        return results

    async def close(self) -> None:
        await self._http.aclose()

    async def _exchange(self, requests: Sequence[Request]) -> list[dict[str, Any]]:
        calls = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}
            for method, params in requests
        ]
        answer = await self._post(calls if len(calls) > 1 else calls[0])
        by_id = {item.get("id"): item for item in (answer if isinstance(answer, list) else [answer])}
        try:
            return [by_id[call["id"]] for call in calls]
        except KeyError:
            # A node that refuses a whole batch answers once, without an id.
            refusal = next((item for item in by_id.values() if "error" in item), None)
            if refusal is not None:
                raise NodeRefused(requests[0][0], refusal["error"]) from None
            raise ChainError(f"The chain's node at {self.host} left a request unanswered.") from None

    async def _post(self, body: object) -> Any:
        try:
            response = await self._http.post(self._url, json=body)
            response.raise_for_status()
            answer = json.loads(response.content)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise ChainError(
                f"The chain's node at {self.host} answered with HTTP status {status}.",
                transient=status not in DOOR_CLOSED,
            ) from None
        except httpx.TimeoutException:
            raise ChainError(f"The chain's node at {self.host} did not answer in time.") from None
        except (httpx.HTTPError, httpx.InvalidURL):
            raise ChainError(
                f"The chain's node at {self.host} cannot be reached.", next_step="Check that the grid is up."
            ) from None
        except ValueError:
            raise ChainError(f"The chain's node at {self.host} answered something that is not JSON.") from None
        items = answer if isinstance(answer, list) else [answer]
        if not all(isinstance(item, dict) for item in items):
            raise ChainError(f"The chain's node at {self.host} answered something that is not JSON-RPC.")
        return answer


def _result(method: str, answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is not None:
        raise NodeRefused(method, error if isinstance(error, dict) else {"message": str(error)})
    return answer.get("result")


def _revert_data(data: object) -> bytes | None:
    """Bytes that a reverted call left; nodes wrap them in different ways."""
    if isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, str):
        return None
    text = data.removeprefix("Reverted ").removeprefix("0x")
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
