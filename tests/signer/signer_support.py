"""A page in front of the local signer, on a real chain."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from deepgrid.chain.batches import Request, request_args
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.services.client import ServicesClient
from deepgrid.services.signing.request_signing import Domain
from deepgrid.signer.access import Access, LoopbackHosts
from deepgrid.signer.forwards import Forwards
from deepgrid.signer.http_endpoint import PageStorage, signer_app
from deepgrid.signer.limit import SpendingLimit
from deepgrid.signer.signer import Signer
from deepgrid.signer.typed_data import KINDS
from tests.chain.grid import CREDIT, DEFINITION, Grid, running_grid

HOST = "127.0.0.1:8090"
ORIGIN = f"http://{HOST}"
STRANGER = "0x" + "5" * 40
PAGE = {"Origin": ORIGIN}


@dataclass
class Page:
    """A page at the signer's own address, with its headers. `seen` has every byte that it received."""

    http: httpx.AsyncClient
    chain: Chain
    wallet: Wallet
    tokens: list[str]
    access: Access
    seen: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=lambda: dict(PAGE))

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> httpx.Response:
        answer = await self.http.post(path, json=body, headers=self.headers if headers is None else dict(headers))
        self.seen.append(answer.text + str(answer.headers))
        return answer

    async def open(self) -> Page:
        answer = await self.post("/signer/session", {"token": self.tokens[-1]})
        assert answer.status_code == 200, answer.text
        self.headers["X-Grid-Signer"] = answer.json()["session"]
        return self

    async def call(self, method: str, *params: Any) -> Any:
        """Return the whole JSON-RPC answer."""
        answer = await self.post("/signer", {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def sign(self, kind: str, message: dict[str, Any], domain: dict[str, Any]) -> Any:
        data = {"primaryType": kind, "types": {kind: KINDS[kind]}, "domain": domain, "message": message}
        return await self.call("eth_signTypedData_v4", self.wallet.address, json.dumps(data))

    async def send(self, contract: str, function: str, *args: Any, **fields: Any) -> Any:
        data = interface(contract).encode(function, *args)
        return await self.call(
            "eth_sendTransaction", {"to": self.chain.book.contracts[contract], "data": data, **fields}
        )

    async def permit(self, credits: int, **changes: Any) -> Any:
        """Return a permit of `credits`, with some fields changed."""
        message = {
            "owner": self.wallet.address, "spender": self.chain.book.meta_scheduler, "value": str(credits * CREDIT),
            "nonce": str(changes.pop("nonce", 0)), "deadline": await self.chain.now() + 600,
        }  # fmt: skip
        return await self.sign("Permit", {**message, **changes}, self.credit_domain)

    @property
    def domain(self) -> dict[str, Any]:
        return Domain(self.chain.book.chain_id, self.chain.book.meta_scheduler).as_dict()

    @property
    def credit_domain(self) -> dict[str, Any]:
        book = self.chain.book
        return {"name": "Credit", "version": "1", "chainId": book.chain_id, "verifyingContract": book.credit}

    async def request(self, credits: int, *, delegate: bool = False) -> Any:
        args = request_args(Request(DEFINITION, credits * CREDIT, "job", delegate))
        return await self.send("MetaScheduler", "requestNewJob", *args)

    async def request_with_permit(self, credits: int, signature: str, deadline: int) -> Any:
        raw = bytes.fromhex(signature[2:])
        permit = (credits * CREDIT, deadline, raw[64], raw[:32], raw[32:64])
        args = request_args(Request(DEFINITION, credits * CREDIT, "job", False))
        return await self.send("MetaScheduler", "requestNewJobWithPermit", *args, permit)

    async def cancel(self, job_id: int) -> Any:
        return await self.send("MetaScheduler", "cancelJob", coded_id(job_id))

    async def session_message(self, **changes: Any) -> dict[str, Any]:
        message = {
            "publicKey": "0x04" + secrets.token_hex(64), "notAfter": await self.chain.now() + 3600,
            "rights": "read,store", "origin": ORIGIN,
        }  # fmt: skip
        return {**message, **changes}


@asynccontextmanager
async def signing_page(grid: Grid, name: str, limit: int = 1000, credits: int = 10_000) -> AsyncIterator[Page]:
    """Yield a page whose token is not exchanged yet, with a funded customer of its own."""
    wallet = grid.new_key(name)
    async with await Chain.connect(grid.book) as chain:
        operator, sender = (Sender(chain, one) for one in (Wallet.load(grid.operator_key), wallet))
        await Writer(chain, operator).mint(wallet.address, credits * CREDIT)
        tokens: list[str] = []
        access = Access(tokens.append)
        signer = Signer(chain, sender, SpendingLimit(limit * CREDIT))
        services = ServicesClient.of(grid.book, wallet.account)
        storage, forwards = PageStorage(grid.keys / f"{name}.json"), Forwards(chain, services)
        app = LoopbackHosts(signer_app(signer, access, storage, forwards))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            yield Page(http, chain, wallet, tokens, access)
        await forwards.close()
        await services.close()
        await sender.close()
        await operator.close()


_names = itertools.count()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("signer")) as grid:
        yield grid


@pytest.fixture
async def closed_page(grid: Grid) -> AsyncIterator[Page]:
    """A page that has not exchanged its token."""
    async with signing_page(grid, f"customer{next(_names)}") as page:
        yield page


@pytest.fixture
async def page(closed_page: Page) -> Page:
    return await closed_page.open()


def transactions(page: Page, grid: Grid) -> int:
    """Return how many transactions the account has sent."""
    return int(grid.anvil.call("eth_getTransactionCount", page.wallet.address, "pending"), 16)
