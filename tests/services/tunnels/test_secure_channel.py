"""The key agreement of a tunnel: its two parties, and a man in the middle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.signing.request_signing import WINDOW_S
from deepgrid.services.signing.session_keys import Rights
from deepgrid.services.signing.signatures import BadRequestSignature, Domain
from deepgrid.services.signing.signers import Signer, WalletSigner
from deepgrid.services.tunnels.secure_channel import (
    OpeningTunnel,
    SealedChannel,
    TunnelBroken,
    answer_opening,
    check_opening,
)
from tests.services.support import ACCOUNTS, DOMAIN, MemoryChain, session_key

NOW = 1_700_000_000


@pytest.fixture
def job() -> Job:
    return MemoryChain().put(1, "ab" * 32, JobStatus.RUNNING)


def _opened(job: Job, signer: Signer | None = None, now: int = NOW) -> OpeningTunnel:
    return OpeningTunnel.to(job, signer or WalletSigner(ACCOUNTS["customer"]), DOMAIN, now)


def _agreed(job: Job) -> tuple[SealedChannel, SealedChannel]:
    """Return the channels of the customer and of the provider."""
    opened = _opened(job)
    answer, channel = answer_opening(opened.opening, ACCOUNTS["provider"], DOMAIN)
    return opened.channel(answer), channel


def test_both_sides_agree_and_each_direction_has_its_own_key(job: Job) -> None:
    customer, provider = _agreed(job)
    assert [provider.open(customer.seal(text)) for text in (b"a", b"b")] == [b"a", b"b"]
    assert customer.open(provider.seal(b"c")) == b"c"
    with pytest.raises(TunnelBroken):
        customer.open(customer.seal(b"its own message"))


@pytest.mark.parametrize("change", ["flip", "drop", "repeat", "swap", "cut"])
def test_a_message_that_is_not_the_next_one_breaks_the_tunnel(job: Job, change: str) -> None:
    customer, provider = _agreed(job)
    first, second = customer.seal(b"first"), customer.seal(b"second")
    received = {
        "flip": [bytes([first[0] ^ 1]) + first[1:]],
        "drop": [second],
        "repeat": [first, first],
        "swap": [second, first],
        "cut": [first[:-1]],
    }[change]
    with pytest.raises(TunnelBroken):
        for message in received:
            provider.open(message)


@pytest.mark.parametrize("rights", ["shell", "read,store,shell"])
def test_a_session_key_with_the_right_opens(job: Job, rights: Rights) -> None:
    key = session_key(rights=rights, now=NOW)
    assert check_opening(_opened(job, key).opening, job, DOMAIN, NOW) == key.session


@pytest.mark.parametrize(
    ("signer", "says"),
    [
        (WalletSigner(ACCOUNTS["rival"]), "not signed by the customer"),
        (session_key(rights="read,store", now=NOW), "no right to shell"),
        (session_key("rival", "shell", now=NOW), "not signed by the address"),
        (session_key(rights="shell", now=NOW - 13 * 3600), "ended"),
    ],
    ids=["another customer", "no right", "another customer's session", "ended session"],
)
def test_nobody_else_opens(job: Job, signer: Signer, says: str) -> None:
    with pytest.raises(BadRequestSignature, match=says):
        check_opening(_opened(job, signer).opening, job, DOMAIN, NOW)


def test_an_opening_is_good_for_one_job_claim_provider_grid_and_time(job: Job) -> None:
    opening = _opened(job).opening
    assert check_opening(opening, job, DOMAIN, NOW) is None
    others = [replace(job, id=2), replace(job, claimed_at=9), replace(job, provider=ACCOUNTS["other_provider"].address)]
    for other in others:
        with pytest.raises(BadRequestSignature):
            check_opening(opening, other, DOMAIN, NOW)
    with pytest.raises(BadRequestSignature):
        check_opening(opening, job, Domain(1, DOMAIN.verifying_contract), NOW)
    with pytest.raises(BadRequestSignature, match="off the supervisor's clock"):
        check_opening(opening, job, DOMAIN, NOW + WINDOW_S + 1)


def test_only_the_jobs_provider_answers(job: Job) -> None:
    opened = _opened(job)
    answer, _ = answer_opening(opened.opening, ACCOUNTS["rival"], DOMAIN)
    with pytest.raises(BadRequestSignature, match="not signed by the provider"):
        opened.channel(answer)


def test_an_answer_to_another_opening_is_refused(job: Job) -> None:
    """So the services cannot join a customer to another customer's tunnel, or keep answers for later."""
    answer, _ = answer_opening(_opened(job).opening, ACCOUNTS["provider"], DOMAIN)
    with pytest.raises(BadRequestSignature, match="not signed by the provider"):
        _opened(job).channel(answer)


def test_services_that_exchange_the_keys_are_noticed(job: Job) -> None:
    """A man in the middle needs a signature over its own key, from the customer or from the provider."""
    opened, middle = _opened(job), _opened(job, WalletSigner(ACCOUNTS["rival"]))
    forged = opened.opening.model_copy(update={"public_key": middle.opening.public_key})
    with pytest.raises(BadRequestSignature):
        check_opening(forged, job, DOMAIN, NOW)
    answer, _ = answer_opening(opened.opening, ACCOUNTS["provider"], DOMAIN)
    with pytest.raises(BadRequestSignature):
        opened.channel(answer.model_copy(update={"public_key": middle.opening.public_key}))


def test_keys_that_give_no_secret_are_refused(job: Job) -> None:
    opening = _opened(job).opening.model_copy(update={"public_key": "00" * 32})
    with pytest.raises(BadRequestSignature, match="gives no secret"):
        answer_opening(opening, ACCOUNTS["provider"], DOMAIN)
