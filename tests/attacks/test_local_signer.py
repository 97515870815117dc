"""Another account of the customer's machine attacks the signer of `dps web`, with headers that no browser forges."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.services.signing.request_signing import TYPES, Domain
from tests.attacks.local_account import PYTHON
from tests.attacks.web_thief import PLANTED, THIEF, Seen, thief_at
from tests.chain.grid import CREDIT, Grid, running_grid
from tests.grid.prefect_ui import CHROMIUM, QUIET
from tests.waiting import until
from tests.web.local_web import LocalWeb, lasting_port, local_web

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root starts a process as another account"),
    pytest.mark.asyncio(loop_scope="module"),
]

TAKEN = "took the token"
FUNDS, STOLEN = 1000, 900
HANG_UP = """
import socket, sys
request = sys.stdin.buffer.read()
for _ in range(50):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as own:
        own.sendall(request)
"""
SECRET = re.compile(r"[\w-]{43}")  # of a session, which its length shows
LOOT = "0x" + "5" * 40
LONG = 200_000  # so that the end of the connection arrives after the request
OF_A_CONNECTION = ("Connection", "Content-Length", "Content-Type", "Accept-Encoding")
ACCOUNTS = {"method": "eth_accounts", "params": []}


def theft(chain: Chain) -> dict[str, Any]:
    """Return the call that the thief wants."""
    data = interface("Credit").encode("transfer", LOOT, STOLEN * CREDIT)
    return {"method": "eth_sendTransaction", "params": [{"to": chain.book.credit, "data": data}]}


@dataclass(frozen=True)
class Target:
    """A customer with `dps web`, and its credits."""

    web: LocalWeb
    chain: Chain
    wallet: Wallet

    @property
    def theft(self) -> dict[str, Any]:
        return theft(self.chain)

    async def lost(self) -> int:
        """Return the credits that the customer has lost."""
        return FUNDS - await self.chain.balance(self.wallet.address) // CREDIT


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("signer")) as grid:
        yield grid


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page with a storage of its own."""
    page = await browser.new_page()
    yield page
    await page.close()


@asynccontextmanager
async def customer(grid: Grid, folder: Path) -> AsyncIterator[tuple[Chain, Wallet]]:
    """Yield a customer with credits."""
    wallet = grid.new_key(folder.name)
    async with await Chain.connect(grid.book) as chain:
        operator = Sender(chain, Wallet.load(grid.operator_key))
        await Writer(chain, operator).mint(wallet.address, FUNDS * CREDIT)
        await operator.close()
        yield chain, wallet


@pytest_asyncio.fixture(loop_scope="module")
async def target(grid: Grid, tmp_path: Path) -> AsyncIterator[Target]:
    async with customer(grid, tmp_path) as (chain, wallet):
        assert wallet.key_file is not None
        with local_web(grid.book, wallet.key_file, tmp_path) as web:
            yield Target(web, chain, wallet)


async def status_of(url: str, call: dict[str, Any], headers: dict[str, str]) -> int:
    """Return how the signer answers a program of the customer's own account."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as program:
        return (await program.post(f"{url}/signer", json=call, headers=headers)).status_code


async def is_taken_or_shown(page: Page) -> bool:
    """Return whether the planted page has taken the token, or the page of `dps web` knows its account."""
    return await page.title() == TAKEN or await page.get_by_text(f"{FUNDS} credits").is_visible()


def forged(seen: Seen, url: str) -> Iterator[dict[str, str]]:
    """Yield the headers that a browser sent to the thief, as the page of the signer would send them."""
    named = {name: value for name, value in seen.headers.items() if name not in ("Host", "Origin", *OF_A_CONNECTION)}
    cookies = [one.value for one in SimpleCookie(named.get("Cookie", "")).values()]
    for secret in ("1", *cookies):
        yield {**named, "Origin": url, "Sec-Fetch-Site": "same-origin", "X-Grid-Signer": secret}


@pytest.mark.attack(
    "serves a page at another port of 127.0.0.1, which calls the signer, and replays what the browser sends to it",
    attacker="another account of the customer's machine",
    gain="nothing: the browser sends it no secret of the signer",
    defence="the session's secret is in the storage of the page's origin; cookies do not count",
)
async def test_the_customer_follows_one_link(target: Target, page: Page) -> None:
    address = target.web.address()
    url = address.partition("/#")[0]
    await page.goto(address)
    await page.get_by_text(f"{FUNDS} credits").wait_for()
    with thief_at(httpx.URL(url).host) as thief:
        await page.evaluate("link => location.assign(link)", thief.link(f"{url}/", target.theft))
        await until(thief.has_report)
        seen = thief.seen()
        sent = [headers for one in seen for headers in forged(one, url)]
        assert sent
        for headers in sent:
            assert await status_of(url, target.theft, headers) == 401
            assert thief.account.request(f"{url}/signer", "POST", target.theft, **headers).status == 403
    assert await target.lost() == 0


@pytest.mark.attack(
    "calls the web app at any path, with all headers of the page and its secret, or with an unused token",
    attacker="another account of the customer's machine",
    gain="a refusal",
    defence="Linux knows the account behind each connection; only root and the account of `dps web` get answers",
)
async def test_another_account_with_the_whole_secret(target: Target) -> None:
    with target.web.session() as page:
        url, token = target.web.address().split("/#token=")
        headers = {name: page.headers[name] for name in ("Origin", "X-Grid-Signer")}
        for path in ("/", "/signer", "/signer/forward", "/rpc", "/v1/grid", "/v1/health", "/v1/check"):
            for method, body in (("GET", None), ("POST", target.theft)):
                assert THIEF.request(url + path, method, body, **headers).status == 403, path
        assert THIEF.request(f"{url}/signer/session", "POST", {"token": token}, **headers).status == 403
        assert "result" in page.post("/signer", json=ACCOUNTS).json()
    assert await target.lost() == 0


@pytest.mark.attack(
    "asks for signatures that end session keys at any time, and reads the chain without the session",
    attacker="a page or program that reaches `dps web`",
    gain="a refusal",
    defence="the signer signs no requests: a session key signs its own end; `/rpc` and `/v1/check` need the session",
)
async def test_what_the_page_does_not_need_is_refused(target: Target) -> None:
    """The signer accepted any future date for them, so they could be kept for later."""
    message = {"method": "POST", "path": "/v1/sessions/revoke", "bodyHash": "0x" + "1" * 64, "issuedAt": 2**40,
               "nonce": "0x" + "2" * 64}  # fmt: skip
    domain = Domain(target.chain.book.chain_id, target.chain.book.meta_scheduler).as_dict()
    data = {"primaryType": "Request", "types": TYPES, "domain": domain, "message": message}
    call = {"method": "eth_signTypedData_v4", "params": [target.wallet.address, data]}
    read = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    with target.web.session() as page:
        assert "result" not in page.post("/signer", json=call).json()
        assert "result" in page.post("/rpc", json=read).json()
        assert page.post("/rpc", json=read, headers={"X-Grid-Signer": "1"}).status_code == 401


@pytest.mark.attack(
    "asks `dps web` to open a port of the customer's running job on this machine",
    attacker="a page or program that reaches `dps web`",
    gain="a refusal",
    defence="`/signer/forward` needs the session of the page, its origin and a body of JSON, as the signer does",
)
async def test_no_other_page_opens_a_port_of_a_job(target: Target) -> None:
    wanted = {"job": 1, "port": 8888}
    with target.web.session() as page:
        assert "does not exist" in page.post("/signer/forward", json=wanted).json()["error"]
        for changed in ({"X-Grid-Signer": "1"}, {"Origin": "http://127.0.0.1:18431"}, {"Sec-Fetch-Site": "same-site"}):
            assert page.post("/signer/forward", json=wanted, headers=changed).status_code in (401, 403)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert page.post("/signer/forward", content=b"job=1&port=8888", headers=form).status_code == 415


@pytest.mark.attack(
    "has the secret, sends the transfer and hangs up at once, when the kernel counts its socket as root's",
    attacker="another account of the customer's machine",
    gain="a refusal that it does not read",
    defence="a connection counts only while a program holds it",
)
async def test_another_account_that_hangs_up(target: Target) -> None:
    with target.web.session() as page:
        body = json.dumps(target.theft) + " " * LONG
        head = ["POST /signer HTTP/1.1", f"Host: {page.base_url.netloc.decode()}", "Content-Type: application/json"]
        head += [f"{name}: {page.headers[name]}" for name in ("Origin", "X-Grid-Signer")]
        request = "\r\n".join([*head, f"Content-Length: {len(body)}", "", body])
        done = THIEF.run([PYTHON, "-c", HANG_UP, str(page.base_url.port)], request)
        assert done.returncode == 0, done.stderr
        own = interface("Credit").encode("transfer", LOOT, CREDIT)
        call = {"method": "eth_sendTransaction", "params": [{"to": target.chain.book.credit, "data": own}]}
        assert "result" in page.post("/signer", json=call).json()
    assert await target.lost() == 1


@pytest.mark.attack(
    "listens at the port of `dps web` when it has ended, and reads the storage of a page that is still open",
    attacker="another account of the customer's machine",
    gain="the secret of a session that has ended",
    defence="sessions end with the process, and each start begins with none",
)
async def test_a_secret_is_worth_nothing_after_a_restart(grid: Grid, page: Page, tmp_path: Path) -> None:
    wallet, port = grid.new_key(tmp_path.name), lasting_port()
    assert wallet.key_file is not None
    with local_web(grid.book, wallet.key_file, tmp_path, port) as web:
        address = web.address()
        await page.goto(address)
        await page.get_by_text("0 credits").wait_for()
    with thief_at(httpx.URL(address).host, port) as thief:
        await page.reload()
        await until(thief.has_report)
        secrets = set(SECRET.findall(str(thief.seen())))
    assert secrets
    with local_web(grid.book, wallet.key_file, tmp_path, port) as web:
        url, before = (one.partition("/#")[0] for one in (web.address(), address))
        for secret in secrets:
            for origin in (url, before):
                named = {"Host": origin.removeprefix("http://"), "Origin": origin, "X-Grid-Signer": secret}
                assert await status_of(url, ACCOUNTS, named) == 401


@pytest.mark.attack(
    "listens at the port of `dps web` when it has ended, and uses the session key of a page that is still open",
    attacker="another account of the customer's machine",
    gain="nothing",
    defence="the page of `dps web` keeps its session key in memory only: a new one needs no consent of the user",
)
async def test_no_session_key_stays_behind(target: Target, page: Page) -> None:
    address = target.web.address()
    await page.goto(address)
    await page.get_by_text(f"{FUNDS} credits").click()
    await page.get_by_role("button", name="Open", exact=True).click()
    await page.get_by_text("This page has a session key.").wait_for()
    target.web.process.terminate()
    target.web.process.wait()
    where = httpx.URL(address)
    with thief_at(where.host, where.port or 0) as thief:
        await page.reload()
        await until(thief.has_report)
        assert "read,store" not in str(thief.seen())


@pytest.mark.attack(
    "listens at the port before `dps web` does, and leaves a page in the browser that takes the token",
    attacker="another account of the customer's machine",
    gain="nothing: the token goes to another origin",
    defence="each start of `dps web` has a new address in 127.0.0.0/8, so no page can be there before",
)
async def test_a_page_that_was_planted_before_the_start(grid: Grid, page: Page, tmp_path: Path) -> None:
    port = lasting_port()
    async with customer(grid, tmp_path) as (chain, wallet):
        assert wallet.key_file is not None
        with thief_at("127.0.0.1", port, PLANTED.replace("CALL", json.dumps(theft(chain)))) as thief:
            await page.goto(thief.url)
            await page.wait_for_function("document.title === 'planted'")
            await page.goto("about:blank")
        with local_web(grid.book, wallet.key_file, tmp_path, port) as web:
            await page.goto(web.address())
            await until(lambda: is_taken_or_shown(page))
            assert await page.title() != TAKEN
            assert await chain.balance(wallet.address) == FUNDS * CREDIT
