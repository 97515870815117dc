"""Key files are private, never overwritten, and never shown."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from deepgrid.chain.node.light_keyfiles import VALIDATORS_CURVE_ORDER
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
ADDRESS = "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"


def _file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("text", [KEY, f"0x{KEY}", f"0X{KEY.upper()}\n", f"  0x{KEY}  \n"])
def test_hex_keys(tmp_path: Path, text: str) -> None:
    assert Wallet.load(_file(tmp_path, text)).address == ADDRESS


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o660, 0o666, 0o601])
def test_a_key_that_other_accounts_can_read_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = _file(tmp_path, KEY, mode)
    with pytest.raises(ConfigurationError) as refused:
        Wallet.load(path)
    assert refused.value.next_step == f"Run `chmod 600 {path}`."
    assert KEY not in str(refused.value)


def test_missing_file_folder_and_pipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no key file"):
        Wallet.load(tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="is a folder"):
        Wallet.load(tmp_path)
    with pytest.raises(ConfigurationError, match="not a regular file"):
        Wallet.load("/dev/null")


@pytest.mark.parametrize(
    "text", ["", KEY[:-1], KEY + "0", "g" * 64, "0" * 64, "f" * 64, f"{KEY}\n{KEY}", "{", "\udcff" * 3]
)
def test_an_invalid_key_file_is_refused_without_showing_its_content(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPGRID_KEY_PASSWORD", "x")
    path = tmp_path / "key"
    path.write_bytes(text.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(ConfigurationError) as refused:
        Wallet.load(path)
    assert KEY[:16] not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_encrypted_keystore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path, json.dumps(Account.encrypt(bytes.fromhex(KEY), "open sesame", kdf="pbkdf2", iterations=10)))
    monkeypatch.delenv("DEEPGRID_KEY_PASSWORD", raising=False)
    with pytest.raises(ConfigurationError, match="DEEPGRID_KEY_PASSWORD"):
        Wallet.load(path)
    monkeypatch.setenv("DEEPGRID_KEY_PASSWORD", "wrong")
    with pytest.raises(ConfigurationError, match="does not open"):
        Wallet.load(path)
    monkeypatch.setenv("DEEPGRID_KEY_PASSWORD", "open sesame")
    assert Wallet.load(path).address == ADDRESS


def test_created_key_is_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "home" / "key"
    umask = os.umask(0)
    try:
        wallet = Wallet.create(path)
    finally:
        os.umask(umask)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert Wallet.load(path).address == wallet.address
    content = path.read_text()
    with pytest.raises(ConfigurationError, match="never overwritten"):
        Wallet.create(path)
    assert path.read_text() == content
    assert [entry.name for entry in path.parent.iterdir()] == ["key"]


def test_logs_and_errors_never_show_the_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wallet = Wallet.load(_file(tmp_path, KEY))
    assert repr(wallet) == str(wallet) == f"Wallet({ADDRESS})"
    assert KEY not in f"{vars(wallet)} {wallet.account!r} {caplog.text}"


def test_typed_signature_recovers_to_the_signer(tmp_path: Path) -> None:
    wallet = Wallet.load(_file(tmp_path, KEY))
    domain = {"name": "deepgrid", "chainId": 31337}
    types = {"Request": [{"name": "path", "type": "string"}, {"name": "issued", "type": "uint256"}]}
    message = {"path": "/x", "issued": 7}
    signature = wallet.sign_typed(domain, types, message)
    assert len(signature) == 132
    signed = encode_typed_data(domain, types, message)
    assert Account.recover_message(signed, signature=signature) == ADDRESS


def test_secrets_depend_on_the_key_and_the_purpose_only_and_do_not_show_the_key(tmp_path: Path) -> None:
    wallet, same = Wallet.load(_file(tmp_path, KEY)), Wallet(bytes.fromhex(KEY))
    secret = wallet.secret_for(b"a")
    assert secret == same.secret_for(b"a") == wallet.secret_for(b"a")
    others = [wallet.secret_for(b"b"), wallet.secret_for(b""), Wallet(bytes(31) + b"1").secret_for(b"a")]
    assert len({secret, *others}) == 4
    assert len(secret) == 32
    assert bytes.fromhex(KEY) not in (secret, wallet.secret_for(b""))


@pytest.mark.parametrize(
    ("use", "loads"),
    [
        ("from deepgrid.chain.transactions.eth_accounts import Account", {"eth_account"}),
        (
            "import asyncio, deepgrid.chain.node.node as n\nasync def f(): await n.Rpc('http://127.0.0.1:1').close()\nasyncio.run(f())",
            {"aiohttp"},
        ),
    ],
)
def test_signing_and_reading_load_no_curves_of_validators(use: str, loads: set[str]) -> None:
    """They take longer to import than all the rest of eth_account."""
    program = f"import sys\n{use}\nprint(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"eth_account", "aiohttp", "web3"} & set(modules) == loads
    assert not {"py_ecc.bls", "py_ecc.bls12_381", "py_ecc.optimized_bls12_381"} & set(modules)


def test_a_keystore_of_a_validator_loads_them() -> None:
    program = "\n".join(
        (
            "from deepgrid.chain.transactions.eth_accounts import Account",
            "from eth_keyfile.keyfile import MAX_V4_PRIVATE_KEY, bls",
            "print(MAX_V4_PRIVATE_KEY, bls.SkToPk(5).hex())",
        )
    )
    from py_ecc.bls import G2ProofOfPossession
    from py_ecc.bls12_381 import curve_order

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(curve_order - 1), G2ProofOfPossession.SkToPk(5).hex()]
    assert curve_order == VALIDATORS_CURVE_ORDER
