"""The local signer refuses requests of other pages, for other grids or above the limit, and never shows a key."""

from __future__ import annotations

import json
import logging
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from deepgrid.services.signing.request_signing import TYPES
from deepgrid.services.signing.session_keys import MAX_LIFETIME_S
from deepgrid.signer.access import MOST_SESSIONS
from deepgrid.signer.http_endpoint import LARGEST_BODY, MOST_BYTES
from deepgrid.signer.typed_data import KINDS, PERMIT_LASTS_S
from tests.chain.grid import CREDIT, Grid
from tests.signer.signer_support import HOST, ORIGIN, PAGE, STRANGER, Page, transactions
from tests.signer.signer_support import closed_page as closed_page
from tests.signer.signer_support import grid as grid
from tests.signer.signer_support import page as page

CALL = {"jsonrpc": "2.0", "id": 1, "method": "eth_accounts", "params": []}
PORT = {"job": 1, "port": 8888}


# -- who may call ----------------------------------------------------------------------------


async def test_the_page_learns_that_there_is_a_signer(closed_page: Page) -> None:
    assert (await closed_page.http.get("/signer")).status_code == 204


async def test_without_the_token_nothing_answers(closed_page: Page) -> None:
    assert (await closed_page.post("/signer", CALL)).status_code == 401
    assert (await closed_page.post("/signer/forward", PORT)).status_code == 401
    assert (await closed_page.post("/signer/session", {"token": ""})).status_code == 403
    assert (await closed_page.post("/signer/session", {"token": "é"})).status_code == 403
    lone, headers = b'{"token": "\\ud800"}', {**closed_page.headers, "Content-Type": "application/json"}
    assert (await closed_page.http.post("/signer/session", content=lone, headers=headers)).status_code == 403
    assert (await closed_page.post("/signer", CALL)).status_code == 401


async def test_a_token_opens_one_session_only(closed_page: Page) -> None:
    first = closed_page.tokens[-1]
    answer = await closed_page.post("/signer/session", {"token": first})
    assert "set-cookie" not in answer.headers
    assert (await closed_page.post("/signer/session", {"token": first})).status_code == 403
    assert (await closed_page.post("/signer", CALL)).status_code == 401
    assert closed_page.tokens[-1] != first
    await closed_page.open()
    assert (await closed_page.post("/signer", CALL)).status_code == 200


async def test_no_cookie_opens_the_signer(page: Page) -> None:
    """Cookies have no port, so browsers send them to every server of this machine, and accept them from each."""
    secret = page.headers.pop("X-Grid-Signer")
    for name in ("deepgrid-signer", "deepgrid-signer-8090", "X-Grid-Signer", "session"):
        answer = await page.post("/signer", CALL, {**page.headers, "Cookie": f"{name}={secret}"})
        assert answer.status_code == 401, answer.text


async def test_more_pages_than_the_signer_knows_end_the_oldest_session(page: Page) -> None:
    oldest = dict(page.headers)
    for _ in range(MOST_SESSIONS):
        assert (await page.post("/signer", CALL, oldest)).status_code == 200
        await page.open()
    assert (await page.post("/signer", CALL, oldest)).status_code == 401
    assert (await page.post("/signer", CALL)).status_code == 200


async def test_at_the_end_no_session_counts_and_none_is_opened(page: Page) -> None:
    """Requests may still come over open connections while the server stops."""
    page.access.end()
    assert (await page.post("/signer", CALL)).status_code == 401
    assert (await page.post("/signer/session", {"token": page.tokens[-1]})).status_code == 403


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
        {"Host": "localhost:8090", "Origin": "http://localhost:8090"},
        {"Host": "[::1]:8090", "Origin": "http://[::1]:8090"},
        {"Host": "127.0.0.1:8090.grid.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
async def test_another_site_is_refused_even_with_the_secret(page: Page, changed: dict[str, str | None]) -> None:
    headers = {"Host": HOST, "Content-Type": "application/json", **page.headers, **changed}
    kept = {name: value for name, value in headers.items() if value is not None}
    for path, body in (("/signer", CALL), ("/signer/session", {"token": page.tokens[-1]}), ("/signer/forward", PORT)):
        answer = await page.post(path, body, kept)
        assert answer.status_code in (403, 415, 421), answer.text
        assert "session" not in answer.json()


async def test_a_session_counts_at_the_origin_that_opened_it(page: Page) -> None:
    """A forwarded port may have another number, as with `ssh -L 9000:127.0.0.1:8090`."""
    forwarded = {"Host": "127.0.0.1:9000", "Origin": "http://127.0.0.1:9000"}
    assert (await page.post("/signer", CALL, {**page.headers, **forwarded})).status_code == 401
    answer = await page.post("/signer/session", {"token": page.tokens[-1]}, forwarded)
    opened = {**forwarded, "X-Grid-Signer": answer.json()["session"]}
    assert (await page.post("/signer", CALL, opened)).status_code == 200
    assert (await page.post("/signer", CALL, {**opened, **PAGE, "Host": HOST})).status_code == 401


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"job": 2**63 - 1, "port": 8888}, "does not exist."),
        ({"job": 1, "port": 0}, "A port is a number"),
        ({"job": 1, "port": "8888"}, "A port is a number"),
        ({"job": True, "port": 1}, "A port is a number"),
        ({"job": 2**63, "port": 1}, "A port is a number"),
        ({}, "A port is a number"),
    ],
)
async def test_a_port_is_opened_in_a_running_job_only(page: Page, body: dict[str, Any], said: str) -> None:
    answer = await page.post("/signer/forward", body)
    assert (answer.status_code, said in answer.json()["error"]) == (502, True), answer.text


# -- what is kept ----------------------------------------------------------------------------


async def test_the_page_finds_what_it_kept(page: Page, grid: Grid) -> None:
    """Its origin is new at each start, so its own storage is empty."""
    assert (await page.post("/signer/storage", {})).json() == {"texts": {}}
    for changes in ({"theme": "dark", "draft": "é"}, {"theme": None, "number": 7}, {"file:Qm": "steps: []"}):
        assert (await page.post("/signer/storage", {"changes": changes})).status_code == 204
    assert (await page.post("/signer/storage", {})).json() == {"texts": {"draft": "é", "file:Qm": "steps: []"}}
    (file,) = grid.keys.glob(f"{Path(str(page.wallet.key_file)).name}.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_what_is_kept_needs_a_session(closed_page: Page) -> None:
    for body in ({}, {"changes": {"theme": "dark"}}):
        assert (await closed_page.post("/signer/storage", body)).status_code == 401


async def test_too_much_or_malformed_is_not_kept(page: Page) -> None:
    for number in range(2 * MOST_BYTES // LARGEST_BODY):
        answer = await page.post("/signer/storage", {"changes": {f"text {number}": "x" * (LARGEST_BODY - 100)}})
    assert answer.status_code == 507
    for changes in ([], "x", None, 7):
        assert (await page.post("/signer/storage", {"changes": changes})).status_code == 507
    assert len((await page.post("/signer/storage", {})).json()["texts"]) == MOST_BYTES // LARGEST_BODY


async def test_the_oldest_files_make_room(page: Page) -> None:
    """Each submitted file is stored. A full storage must not prevent the note that avoids a second job."""
    text = "x" * (LARGEST_BODY - 100)
    for number in range(MOST_BYTES // LARGEST_BODY):
        await page.post("/signer/storage", {"changes": {f"file:{number}": text}})
    for changes in ({"submission": text}, {"file:1": text + "y"}, {"draft": text}):
        assert (await page.post("/signer/storage", {"changes": changes})).status_code == 204
    found = (await page.post("/signer/storage", {})).json()["texts"]
    assert list(found) == [*(f"file:{number}" for number in range(3, 8)), "submission", "file:1", "draft"]


async def test_a_storage_that_cannot_be_read_is_left_alone(page: Page, grid: Grid) -> None:
    file = grid.keys / f"{Path(str(page.wallet.key_file)).name}.json"
    file.symlink_to(file)
    for body in ({}, {"changes": {"theme": "dark"}}):
        assert (await page.post("/signer/storage", body)).status_code == 507
    assert file.is_symlink()


async def test_a_damaged_file_is_replaced(page: Page, grid: Grid) -> None:
    file = grid.keys / f"{Path(str(page.wallet.key_file)).name}.json"
    for damaged in (b"", b"[]", b"{", b"\xff"):
        file.write_bytes(damaged)
        assert (await page.post("/signer/storage", {})).json() == {"texts": {}}
        assert (await page.post("/signer/storage", {"changes": {"theme": "dark"}})).status_code == 204
        assert (await page.post("/signer/storage", {})).json() == {"texts": {"theme": "dark"}}


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


async def test_no_request_is_signed(page: Page) -> None:
    """The signer once signed the end of a session key with any date. Now the key signs its own end."""
    message = {"method": "POST", "path": "/v1/sessions/revoke", "bodyHash": "0x" + "1" * 64, "issuedAt": 2**40,
               "nonce": "0x" + "2" * 64}  # fmt: skip
    data = {"primaryType": "Request", "types": TYPES, "domain": page.domain, "message": message}
    assert "error" in await page.call("eth_signTypedData_v4", page.wallet.address, json.dumps(data))


async def test_sessions_and_permits_are_signed_while_the_chain_is_quiet(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page dates them by its own clock when the newest block is old. The signer once knew only the block's time."""
    now = await page.chain.now() + 3600
    monkeypatch.setattr(time, "time", lambda: float(now))
    message = await page.session_message(notAfter=now + MAX_LIFETIME_S)
    assert "result" in await page.sign("Session", message, page.domain)
    assert "result" in await page.permit(100, deadline=now + PERMIT_LASTS_S)


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
