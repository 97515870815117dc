"""A receipt is valid in exactly the bytes that its provider signed."""

from __future__ import annotations

import json
import random

import pytest

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.services.receipts import MAX_RECEIPT_BYTES, read_receipt, sign_receipt
from deepgrid.services.receipts.signed import canonical
from deepgrid.services.signing.request_signing import Domain
from tests.services.receipt_support import contents, receipt_of, settled_job
from tests.services.support import ACCOUNTS, DOMAIN, MemoryChain

ALTERED = 200


@pytest.fixture
def job() -> Job:
    return settled_job(MemoryChain())


def test_a_receipt_verifies_offline(job: Job) -> None:
    found = read_receipt(receipt_of(job))
    assert found.receipt == contents(job)
    money = found.receipt.money
    assert (money.deposit_wei, money.top_ups, money.top_ups_wei) == (str(20 * 10**18), 1, str(10 * 10**18))
    assert (money.cost_wei, money.refunded_wei) == (str(4 * 10**18), str(26 * 10**18))


def test_each_altered_byte_makes_it_fail(job: Job) -> None:
    data, chance = receipt_of(job), random.Random(43)
    for place in chance.sample(range(len(data)), ALTERED):
        for new in {data[place] ^ 1, data[place] ^ 0x20, chance.randrange(256)} - {data[place]}:
            altered = data[:place] + bytes([new]) + data[place + 1 :]
            with pytest.raises(InputError):
                read_receipt(altered)
        with pytest.raises(InputError):
            read_receipt(data[:place] + data[place + 1 :])


def test_other_bytes_with_the_same_meaning_fail(job: Job) -> None:
    data = receipt_of(job)
    values, text = json.loads(data), data.decode()
    forms = {
        "spaces": json.dumps(values, sort_keys=True).encode() + b"\n",
        "lines": json.dumps(values, indent=1, sort_keys=True).encode(),
        "order": json.dumps(dict(reversed(values.items())), separators=(",", ":")).encode() + b"\n",
        "no line end": data[:-1],
        "two line ends": data + b"\n",
        "a mark at the beginning": b"\xef\xbb\xbf" + data,
        "a key twice": text.replace('"gpus":0', '"gpus":7,"gpus":0').encode(),
        "a real number": text.replace('"gpus":0', '"gpus":0.0').encode(),
        "an exponent": text.replace('"gpus":0', '"gpus":0e1').encode(),
        "minus zero": text.replace('"gpus":0', '"gpus":-0').encode(),
        "a number as text": text.replace('"gpus":0', '"gpus":"0"').encode(),
        "true for one": text.replace('"tasks":1', '"tasks":true').encode(),
        "an escape": text.replace("alpha", "\\u0061lpha").encode(),
        "capital digits": text.replace(values["signature"], values["signature"].upper().replace("X", "x")).encode(),
        "address without checksum": text.replace(job.customer, job.customer.lower()).encode(),
        "a further field": text.replace('"gpus":0', '"gpus":0,"more":1').encode(),
        "UTF-16": text.encode("utf-16"),
        "nothing": b"",
        "depth": b'{"receipt":' * 10_000,
        "size": data + b" " * MAX_RECEIPT_BYTES,
    }
    for name, form in forms.items():
        assert form != data, name
        with pytest.raises(InputError):
            read_receipt(form)


def test_a_receipt_of_another_signer_fails(job: Job) -> None:
    for other in ("other_provider", "customer", "operator"):
        with pytest.raises(InputError, match="not signed by its provider"):
            read_receipt(receipt_of(job, signer=other))


def test_a_signature_is_worth_nothing_on_another_grid(job: Job) -> None:
    data = receipt_of(job)
    for other in (Domain(1, DOMAIN.verifying_contract), Domain(DOMAIN.chain_id, ACCOUNTS["rival"].address)):
        moved = read_receipt(data).model_copy(update={"receipt": contents(job, domain=other)})
        with pytest.raises(InputError, match="not signed by its provider"):
            read_receipt(canonical(moved))


def test_the_twin_of_a_signature_fails(job: Job) -> None:
    found = read_receipt(receipt_of(job))
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    raw = bytes.fromhex(found.signature[2:])
    twin = raw[:32] + (order - int.from_bytes(raw[32:64], "big")).to_bytes(32, "big") + bytes([55 - raw[64]])
    with pytest.raises(InputError, match="malformed"):
        read_receipt(canonical(found.model_copy(update={"signature": f"0x{twin.hex()}"})))


def test_signed_amounts_must_add_up(job: Job) -> None:
    whole = contents(job)
    wrong = whole.model_copy(update={"money": whole.money.model_copy(update={"refunded_wei": "1"})})
    with pytest.raises(InputError, match="do not add up"):
        read_receipt(sign_receipt(ACCOUNTS["provider"], wrong))


def test_the_same_receipt_has_the_same_bytes(job: Job) -> None:
    assert receipt_of(job) == receipt_of(job)
