"""A session key signs for one wallet, on one grid, for at most 12 hours."""

from __future__ import annotations

import copy
import hashlib
import pickle

import pytest
from Crypto.PublicKey import ECC
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.services.signing import request_signing
from deepgrid.services.signing.request_signing import SIGNATURE_HEADER, BadRequestSignature, Domain, verify
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S, SESSION_HEADER, TYPES, Session
from deepgrid.services.signing.signatures import digest
from deepgrid.services.signing.signers import SessionKey
from tests.services.support import ACCOUNTS, DOMAIN, PATH, Headers

NOW = 1_700_000_000
CUSTOMER, RIVAL = ACCOUNTS["customer"], ACCOUNTS["rival"]
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def fixed_key(secret: int, account: LocalAccount = CUSTOMER) -> SessionKey:
    """Return the same key in each run, so that the names of tests stay the same."""
    key = ECC.construct(curve="P-256", d=secret)
    public_key, end = bytes(key.public_key().export_key(format="raw")), NOW + MAX_LIFETIME_S
    session = Session.signed_by(account, DOMAIN, public_key, end, "read,store", "https://grid.example")
    return SessionKey(account.address, session, key)


KEY = fixed_key(2)


def signed(key: SessionKey = KEY, now: int = NOW) -> Headers:
    return key.headers(DOMAIN, "POST", PATH, b"body", now)


def check(headers: Headers, *, domain: Domain = DOMAIN, method: str = "POST", path: str = PATH, body: bytes = b"body",
          now: int = NOW) -> request_signing.Verified:  # fmt: skip
    return verify(domain, method, path, body, headers, now)


def with_part(index: int, value: str) -> Headers:
    """Signed headers with one part of the session replaced."""
    headers = signed()
    parts = headers[SESSION_HEADER].split(";")
    parts[index] = value
    return headers | {SESSION_HEADER: ";".join(parts)}


def test_a_request_of_a_session_key_is_one_of_its_wallet() -> None:
    verified = check(signed())
    assert verified.address == CUSTOMER.address
    assert verified.session == KEY.session
    assert Session.parse(KEY.session.header()) == KEY.session


def test_a_browser_can_make_the_same_request() -> None:
    """The test acts like a page: the wallet signs typed data, and WebCrypto signs the digest that viem makes."""
    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()
    raw = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    values = {"publicKey": raw, "notAfter": NOW + 60, "rights": "read", "origin": "https://grid.example"}
    wallet = CUSTOMER.sign_message(encode_typed_data(DOMAIN.as_dict(), TYPES, values)).signature
    headers = signed()
    issued_at, nonce = NOW, bytes.fromhex(headers[request_signing.NONCE_HEADER][2:])
    message = digest(request_signing.message_of(DOMAIN, "POST", PATH, b"body", issued_at, nonce))
    r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(SHA256())))
    for half in (s, P256_ORDER - s):  # WebCrypto makes either
        headers[SIGNATURE_HEADER] = "0x" + (r.to_bytes(32, "big") + half.to_bytes(32, "big")).hex()
        headers[SESSION_HEADER] = f"0x{raw.hex()};{NOW + 60};read;https://grid.example;0x{bytes(wallet).hex()}"
        assert check(headers).address == CUSTOMER.address


@pytest.mark.parametrize(
    "other",
    [
        {"method": "GET"}, {"path": PATH + "0"}, {"path": "/v1/jobs/2/log?offset=0"}, {"body": b"other"}, {"body": b""},
        {"domain": Domain(1, DOMAIN.verifying_contract)}, {"domain": Domain(31337, "0x" + "11" * 20)},
    ],
)  # fmt: skip
def test_it_is_for_one_request_on_one_grid(other: dict[str, object]) -> None:
    with pytest.raises(BadRequestSignature, match="for this"):
        check(signed(), **other)  # type: ignore[arg-type]


def test_a_session_for_another_grid_does_not_count_here() -> None:
    elsewhere = SessionKey.create(CUSTOMER, Domain(1, DOMAIN.verifying_contract), now=NOW)
    with pytest.raises(BadRequestSignature, match="the session is not signed by the address"):
        check(signed(elsewhere))


@pytest.mark.parametrize(
    ("lifetime_s", "at", "refusal"),
    [
        (60, NOW + 60, ""), (60, NOW + 61, "the session ended 1 s ago"), (-1, NOW, "ended"),
        (MAX_LIFETIME_S + CLOCK_SLACK_S, NOW, ""), (MAX_LIFETIME_S + CLOCK_SLACK_S + 1, NOW, "more than 12 hours"),
    ],
)  # fmt: skip
def test_a_session_has_an_end_that_is_near(lifetime_s: int, at: int, refusal: str) -> None:
    key = SessionKey.create(CUSTOMER, DOMAIN, now=NOW, lifetime_s=lifetime_s)
    if not refusal:
        assert check(signed(key, at), now=at)
        return
    with pytest.raises(BadRequestSignature, match=refusal):
        check(signed(key, at), now=at)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, "0x" + fixed_key(3).session.public_key.hex()),
        (1, str(NOW + MAX_LIFETIME_S - 1)), (2, "read"), (3, ""), (3, "https://evil.example"),
        (4, "0x" + fixed_key(2, RIVAL).session.signature.hex()),
    ],
)  # fmt: skip
def test_no_part_of_a_session_can_be_changed(index: int, value: str) -> None:
    with pytest.raises(BadRequestSignature, match="not signed by the address"):
        check(with_part(index, value))


def test_a_session_key_signs_for_its_own_wallet_only() -> None:
    with pytest.raises(BadRequestSignature, match="not signed by the address"):
        check(signed() | {request_signing.ADDRESS_HEADER: RIVAL.address})
    other = SessionKey.create(CUSTOMER, DOMAIN, now=NOW)
    with pytest.raises(BadRequestSignature, match="does not match the session key"):
        check(signed() | {SESSION_HEADER: other.session.header()})


def test_a_wallet_and_each_session_key_have_nonces_of_their_own() -> None:
    other = SessionKey.create(CUSTOMER, DOMAIN, now=NOW)
    wallet = request_signing.sign(CUSTOMER, DOMAIN, "POST", PATH, b"body", NOW)
    names = [check(headers).signer for headers in (wallet, signed(), signed(other))]
    assert len(set(names)) == 3
    assert names[1] == f"{CUSTOMER.address}/{KEY.session.key_hash(CUSTOMER.address)}"
    assert KEY.session.key_hash(CUSTOMER.address) == hashlib.sha256(
        bytes.fromhex(CUSTOMER.address[2:]) + KEY.session.public_key
    ).hexdigest()  # fmt: skip
    assert KEY.session.key_hash(RIVAL.address) != KEY.session.key_hash(CUSTOMER.address)


X, Y = KEY.session.public_key[1:33].hex(), KEY.session.public_key[33:].hex()


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, ""), (0, "0x04" + X), (0, "0x02" + X), (0, f"0x04{X}{Y}00"), (0, f"0x06{X}{Y}"), (0, f"04{X}{Y}"),
        (1, ""), (1, "0"), (1, "-1"), (1, "+1"), (1, "1e9"), (1, "9" * 13), (1, "٣" * 10), (1, f"0{NOW + 60}"),
        (2, ""), (2, "write"), (2, "store,read"), (2, "read,read"), (2, "read, store"), (2, "READ"), (2, "read,"),
        (3, "null"), (3, "*"), (3, "https://"), (3, "javascript:x"), (3, "https://a/b"), (3, "https://A.example"),
        (3, "https://" + "a" * 256), (3, "https://a\n"),
        (4, ""), (4, "0x"), (4, "0x" + "00" * 65), (4, "0x" + "ff" * 65), (4, "0x" + "11" * 64),
        (4, "0x" + "11" * 66), (4, "0x" + "00" * 64 + "1b"),
    ],
)  # fmt: skip
def test_malformed_parts_of_a_session_are_refused(index: int, value: str) -> None:
    with pytest.raises(BadRequestSignature, match="malformed"):
        check(with_part(index, value))


def test_a_point_beside_the_curve_is_refused() -> None:
    for point in (b"\x04" + bytes(64), b"\x04" + b"\x01" * 64, b"\x04" + b"\xff" * 64):
        session = Session.signed_by(CUSTOMER, DOMAIN, point, NOW + 60, "read", "")
        with pytest.raises(BadRequestSignature, match="not a point of P-256"):
            check(signed() | {SESSION_HEADER: session.header()})


@pytest.mark.parametrize(
    "value",
    [
        "0x" + "00" * 64, "0x" + "ff" * 64, "0x" + "00" * 32 + "11" * 32, "0x" + "11" * 32 + "00" * 32,
        "0x" + P256_ORDER.to_bytes(32, "big").hex() * 2, "0x" + "11" * 65, "0x" + "11" * 63, "", "0x", "11" * 64,
        "0x3006020101020101" + "00" * 56,
    ],
)  # fmt: skip
def test_malformed_signatures_of_session_keys_are_refused(value: str) -> None:
    with pytest.raises(BadRequestSignature):
        check(signed() | {SIGNATURE_HEADER: value})


def test_a_wallets_signature_does_not_pass_for_that_of_a_session_key_nor_the_other_way_round() -> None:
    wallet = request_signing.sign(CUSTOMER, DOMAIN, "POST", PATH, b"body", NOW)
    with pytest.raises(BadRequestSignature, match="malformed"):
        check(wallet | {SESSION_HEADER: KEY.session.header()})
    without = signed()
    del without[SESSION_HEADER]
    with pytest.raises(BadRequestSignature, match="malformed"):
        check(without)


GARBAGE = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from([*KEY.session.header().split(";"), "", "read", "0x", ";"]), max_size=7).map(";".join),
    st.binary(min_size=64, max_size=64).map(lambda raw: "0x" + raw.hex()),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([SESSION_HEADER, SIGNATURE_HEADER]), GARBAGE)
def test_garbage_is_refused_without_a_crash(name: str, value: str) -> None:
    headers = signed()
    if value == headers[name]:
        return
    with pytest.raises(BadRequestSignature):
        check(headers | {name: value})


def test_a_session_key_stays_in_its_process_and_shows_no_secret() -> None:
    account = Account.create()
    key = SessionKey.create(account, DOMAIN, now=NOW)
    secret = str(int(key._key.d))
    assert repr(key) == f"SessionKey({account.address}, 'read,store', not_after={NOW + MAX_LIFETIME_S})"
    assert secret not in repr(vars(key)["session"])
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="stays in its process"):
            leave(key)
