"""W11: the local signer refuses what is not its page's, not this grid's, or above the limit, and never shows a key."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.web.signer.typed_data import KINDS
from tests.chain.grid import CREDIT, Grid, running_grid
from tests.web.signer_support import HOST, ORIGIN, PAGE, Page, signing_page

STRANGER = "0x" + "5" * 40
CALL = {"jsonrpc": "2.0", "id": 1, "method": "eth_accounts", "params": []}

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
    """How many transactions the account has sent."""
    return int(grid.anvil.call("eth_getTransactionCount", page.wallet.address, "pending"), 16)


# -- who may call ----------------------------------------------------------------------------


async def test_the_page_learns_that_there_is_a_signer(closed_page: Page) -> None:
    assert (await closed_page.http.get("/signer")).status_code == 204


async def test_without_the_token_nothing_answers(closed_page: Page) -> None:
    assert (await closed_page.post("/signer", CALL)).status_code == 401
    assert (await closed_page.post("/signer/session", {"token": ""})).status_code == 403
    assert (await closed_page.post("/signer/session", {"token": "é"})).status_code == 403
    assert (await closed_page.post("/signer", CALL)).status_code == 401


async def test_a_token_opens_one_session_only(closed_page: Page) -> None:
    first = closed_page.tokens[-1]
    answer = await closed_page.post("/signer/session", {"token": first})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=" not in cookie  # so that the browser limits it to the signer's folder, behind any prefix
    closed_page.http.cookies.clear()
    assert (await closed_page.post("/signer/session", {"token": first})).status_code == 403
    assert (await closed_page.post("/signer", CALL)).status_code == 401
    assert closed_page.tokens[-1] != first
    await closed_page.open()
    assert (await closed_page.post("/signer", CALL)).status_code == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"Host": "grid.example"},
        {"Host": "127.0.0.1.nip.example:8090"},
        {"Host": "evil@127.0.0.1"},
        {"Host": "grid.example", "Origin": "http://grid.example"},
        {"Origin": "http://grid.example"},
        {"Origin": "https://127.0.0.1:8090"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8090"},
        {"Origin": "null"},
        {"Origin": None},
        {"X-Grid-Signer": None},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
async def test_another_site_is_refused_even_with_the_cookie(page: Page, changed: dict[str, str | None]) -> None:
    headers = {"Host": HOST, "Content-Type": "application/json", **PAGE, **changed}
    kept = {name: value for name, value in headers.items() if value is not None}
    for path, body in (("/signer", CALL), ("/signer/session", {"token": page.tokens[-1]})):
        answer = await page.post(path, body, kept)
        assert answer.status_code in (403, 415, 421), answer.text
        assert "set-cookie" not in answer.headers


async def test_the_page_may_be_opened_by_any_name_of_this_machine(page: Page) -> None:
    for host in ("localhost:8090", "[::1]:8090", "localhost"):
        headers = {**PAGE, "Host": host, "Origin": f"http://{host}"}
        cookie = "; ".join(f"{name}={value}" for name, value in page.http.cookies.items())
        assert (await page.post("/signer", CALL, {**headers, "Cookie": cookie})).status_code == 200


# -- what is signed --------------------------------------------------------------------------


async def test_account_and_chain(page: Page) -> None:
    assert (await page.call("eth_accounts"))["result"] == [page.wallet.address]
    assert int((await page.call("eth_chainId"))["result"], 16) == page.chain.book.chain_id


async def test_a_session_of_this_page_is_signed(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    message = await page.session_message()
    signature = (await page.sign("Session", message, page.domain))["result"]
    values = {**message, "publicKey": bytes.fromhex(message["publicKey"][2:])}
    signable = encode_typed_data(page.domain, {"Session": KINDS["Session"]}, values)
    assert Account.recover_message(signable, signature=signature) == page.wallet.address
    assert "the signer signed a session key: rights=read,store" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "http://grid.example"},
        {"origin": ""},
        {"rights": "read,store,spend"},
        {"notAfter": 2**40},
        {"notAfter": 1},
        {"publicKey": "0x00"},
        {"more": "fields"},
    ],
    ids=str,
)
async def test_another_session_is_refused(page: Page, changes: dict[str, Any]) -> None:
    assert "error" in await page.sign("Session", await page.session_message(**changes), page.domain)


@pytest.mark.parametrize(
    "changes",
    [
        {"chainId": 1}, {"verifyingContract": STRANGER}, {"name": "another"}, {"version": "2"}, {"salt": "0x00"},
        {"chainId": "one"}, {"chainId": None},
    ],
    ids=str,
)  # fmt: skip
async def test_another_domain_is_refused(page: Page, changes: dict[str, Any]) -> None:
    message = await page.session_message()
    assert "error" in await page.sign("Session", message, {**page.domain, **changes})


async def test_only_requests_that_end_sessions_are_signed(page: Page) -> None:
    message = {"method": "POST", "path": "/v1/sessions/revoke", "bodyHash": "0x" + "1" * 64, "issuedAt": 1,
               "nonce": "0x" + "2" * 64}  # fmt: skip
    assert "result" in await page.sign("Request", message, page.domain)
    assert "error" in await page.sign("Request", {**message, "path": "/v1/definitions/x"}, page.domain)
    assert "error" in await page.sign("Request", {**message, "method": "PUT"}, page.domain)


@pytest.mark.parametrize(
    "changes", [{"spender": STRANGER}, {"owner": STRANGER}, {"deadline": 2**64}, {"value": str(2**256 - 1)}], ids=str
)
async def test_another_permit_is_refused(page: Page, changes: dict[str, Any]) -> None:
    assert "error" in await page.permit(100, **changes)


async def test_unknown_types_and_methods_are_refused(page: Page, grid: Grid) -> None:
    data: dict[str, Any] = {"primaryType": "Order", "types": {"Order": []}, "domain": page.domain, "message": {}}
    assert "error" in await page.call("eth_signTypedData_v4", page.wallet.address, data)
    renamed = {"Permit": [{"name": "owner", "type": "bytes"}]}
    assert "error" in await page.call("eth_signTypedData_v4", page.wallet.address, {**data, "types": renamed})
    for junk in ("", "[]", "null", 7, None, {"types": 3}):
        assert "error" in await page.call("eth_signTypedData_v4", page.wallet.address, junk)
    for method in ("eth_sign", "personal_sign", "eth_signTransaction", "eth_getBalance", "wallet_exportKey", ""):
        assert "error" in await page.call(method, page.wallet.address, "0x00")
    assert transactions(page, grid) == 0


# -- what is sent ----------------------------------------------------------------------------


async def test_a_job_by_permit_is_counted_once(page: Page) -> None:
    for nonce in range(2):  # 500 credits each: 1,000 in all, which is the limit
        deadline = await page.chain.now() + 600
        signature = (await page.permit(500, nonce=nonce, deadline=deadline))["result"]
        sent = await page.request_with_permit(500, signature, deadline)
        assert sent["result"].startswith("0x"), sent
    assert await page.chain.balance(page.wallet.address) == 9_000 * CREDIT
    assert "limit of 1000 credits per hour 0 are left" in (await page.permit(100, nonce=2))["error"]["message"]


async def test_a_job_by_approval_is_counted_once(page: Page) -> None:
    for _ in range(2):
        assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 500 * CREDIT)
        assert "result" in await page.request(500)
    assert "error" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 1)
    assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 0)


async def test_a_permit_that_is_signed_again_is_counted_once(page: Page) -> None:
    for _ in range(5):
        assert "result" in await page.permit(800)
    assert "result" in await page.permit(1000)
    assert "error" in await page.permit(1001)
    assert "error" in await page.permit(1, nonce=1)


@pytest.mark.parametrize("way", ["permit", "approve", "transfer", "request", "delegate", "set delegate"])
async def test_nothing_goes_above_the_limit(page: Page, grid: Grid, way: str) -> None:
    scheduler = page.chain.book.meta_scheduler
    owner = Sender(page.chain, Wallet.load(grid.keys / Path(str(page.wallet.key_file)).name))
    await Writer(page.chain, owner).approve(3000 * CREDIT)  # by `dps`, with the same key
    before = transactions(page, grid)
    answer = await {
        "permit": lambda: page.permit(1001),
        "approve": lambda: page.send("Credit", "approve", scheduler, 4001 * CREDIT),
        "transfer": lambda: page.send("Credit", "transfer", STRANGER, 1001 * CREDIT),
        "request": lambda: page.request(1001),
        "delegate": lambda: page.request(100, delegate=True),
        "set delegate": lambda: page.send("MetaScheduler", "setDelegateSpendingAuthority", bytes(32), True),
    }[way]()
    assert "Start `dps web` with a higher --limit" in answer["error"]["message"]
    assert transactions(page, grid) == before
    await owner.close()


async def test_a_refused_request_gives_its_credits_back(page: Page) -> None:
    for _ in range(3):
        answer = await page.request(900)  # without any allowance
        assert answer["error"]["code"] == 3
        assert answer["error"]["data"]["name"] == "ERC20InsufficientAllowance"
    assert "result" in await page.send("Credit", "transfer", STRANGER, 1000 * CREDIT)
    assert "error" in await page.send("Credit", "transfer", STRANGER, 1)


async def test_a_job_is_cancelled_at_any_limit(page: Page) -> None:
    assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 1000 * CREDIT)
    assert "result" in await page.request(1000)
    job = (await page.chain.jobs_by_customer(page.wallet.address))[0]
    assert "result" in await page.cancel(job)
    assert await page.chain.balance(page.wallet.address) == 10_000 * CREDIT


@pytest.mark.parametrize(
    "fields",
    [
        {"to": STRANGER}, {"to": None}, {"value": "0x1"}, {"from": STRANGER}, {"chainId": "0x1"}, {"data": "0x"},
        {"data": "0x12345678"}, {"data": "zz"}, {"data": None}, {"input": "0x00"}, {"value": "much"},
    ],
    ids=str,
)  # fmt: skip
async def test_another_transaction_is_refused(page: Page, grid: Grid, fields: dict[str, Any]) -> None:
    assert "error" in await page.send("Credit", "transfer", STRANGER, CREDIT, **fields)
    assert transactions(page, grid) == 0


async def test_functions_that_the_page_does_not_need_are_refused(page: Page, grid: Grid) -> None:
    scheduler = page.chain.book.meta_scheduler
    assert "error" in await page.send("Credit", "approve", STRANGER, CREDIT)
    assert "error" in await page.send("Credit", "transferFrom", STRANGER, page.wallet.address, 1)
    assert "error" in await page.send("Credit", "mint", STRANGER, 1)
    assert "error" in await page.send("MetaScheduler", "transferOwnership", STRANGER)
    assert "error" in await page.send("ProviderManager", "ban", scheduler)
    assert transactions(page, grid) == 0


async def test_dps_sends_with_the_same_key_at_the_same_time(page: Page) -> None:
    own = Sender(page.chain, Wallet.load(Path(str(page.wallet.key_file))))
    writer = Writer(page.chain, own)
    by_page = [page.send("Credit", "transfer", STRANGER, CREDIT) for _ in range(5)]
    by_dps = [writer.transfer(STRANGER, CREDIT) for _ in range(5)]
    answers = await asyncio.gather(*by_page, *by_dps)
    assert all("result" in answer for answer in answers[:5])
    assert await page.chain.balance(page.wallet.address) == 9_990 * CREDIT
    await own.close()


# -- keys ------------------------------------------------------------------------------------


async def test_no_answer_and_no_log_line_holds_the_key(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = Path(str(page.wallet.key_file)).read_text().strip().removeprefix("0x").lower()
    await page.permit(100)
    await page.sign("Session", await page.session_message(), page.domain)
    await page.send("Credit", "transfer", STRANGER, CREDIT)
    await page.call("eth_accounts")
    await page.call("eth_private")
    await page.call("eth_signTypedData_v4", page.wallet.address, {"x": 1})
    assert key not in "".join(page.seen).lower()
    assert key not in caplog.text.lower()
    for token in page.tokens:
        assert token not in caplog.text
    assert ORIGIN not in "".join(page.seen)
