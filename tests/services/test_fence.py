"""After a restore, the latest request and session that could be accepted before it are refused. Later ones are not."""

from __future__ import annotations

import pytest

from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import WINDOW_S, Verified, verify
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S, Rights
from deepgrid.services.signing.signers import Signer, WalletSigner
from deepgrid.services.storage.replays import Fence
from tests.services.support import ACCOUNTS, DOMAIN, PATH, session_key

RESTORED_AT = 1_700_000_000
FENCE = Fence(RESTORED_AT)
READ: Rights = "read"


def accepted(signer: Signer, issued_at: int, at: int) -> Verified:
    """Return the request, as the services verify it at this time."""
    return verify(DOMAIN, "GET", PATH, b"", signer.headers(DOMAIN, "GET", PATH, b"", issued_at), at)


def test_requests() -> None:
    wallet = WalletSigner(ACCOUNTS["customer"])
    latest = accepted(wallet, RESTORED_AT + WINDOW_S, RESTORED_AT)
    with pytest.raises(Refusal, match="takes requests again in") as caught:
        FENCE.require_later(latest)
    assert (caught.value.status, caught.value.retry_after_s) == (503, 1)
    FENCE.require_later(accepted(wallet, RESTORED_AT + WINDOW_S + 1, RESTORED_AT + 1))
    Fence().require_later(latest)


def test_sessions() -> None:
    def request(not_after: int, opened_at: int) -> Verified:
        key = session_key(rights=READ, now=opened_at, lifetime_s=not_after - opened_at)
        accepted(key, opened_at, opened_at)  # the services accept it then
        return accepted(key, opened_at + 2 * WINDOW_S, opened_at + 2 * WINDOW_S)

    end = RESTORED_AT + MAX_LIFETIME_S + CLOCK_SLACK_S
    with pytest.raises(Refusal, match="one of full length") as caught:
        FENCE.require_later(request(end, RESTORED_AT))
    assert caught.value.status == 401
    FENCE.require_later(request(end + 1, RESTORED_AT + CLOCK_SLACK_S + 1))
    Fence().require_later(request(end, RESTORED_AT))
