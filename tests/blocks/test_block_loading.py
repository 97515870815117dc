"""A block of another release is loaded with a warning, or refused in one sentence."""

from __future__ import annotations

import logging

import pytest

from blocks import Wallet
from blocks.block_loading import load_block
from deepgrid.errors import ConfigurationError

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"


def stored(monkeypatch: pytest.MonkeyPatch, **data: str) -> None:
    """Let Prefect return a wallet block with this data. As in Prefect, an invalid one is a RuntimeError."""

    async def aload(_name: str) -> Wallet:
        try:
            return Wallet.model_validate(data)
        except ValueError as error:
            raise RuntimeError("Unable to load 'alpha' due to failed validation.") from error

    monkeypatch.setattr(Wallet, "aload", aload)


async def test_a_block_of_another_release_is_refused_by_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(monkeypatch, address=ADDRESS)
    with pytest.raises(ConfigurationError) as refused:
        await load_block(Wallet, "alpha")
    assert refused.value.message.endswith("deepgrid-wallet/alpha does not fit this release: key_file: field required.")
    assert "dps provider init" in refused.value.next_step


async def test_settings_of_a_later_release_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored(monkeypatch, address=ADDRESS, key_file="/key", hardware_module="slot 1")
    with caplog.at_level(logging.WARNING):
        assert (await load_block(Wallet, "alpha")).address == ADDRESS
    expected = "the block deepgrid-wallet/alpha has settings that this release does not know: hardware_module"
    assert caplog.messages == [expected]


async def test_a_block_that_fits_is_quiet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    stored(monkeypatch, address=ADDRESS, key_file="/key")
    await load_block(Wallet, "alpha")
    assert caplog.messages == []


async def test_a_block_that_was_saved_as_a_part_of_another_one_warns_of_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored(monkeypatch, address=ADDRESS, key_file="/key", block_type_slug="deepgrid-wallet")
    with caplog.at_level(logging.WARNING):
        await load_block(Wallet, "alpha")
    assert "does not know" not in caplog.text
