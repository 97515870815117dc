"""A run of `register_provider` takes prices and labels from the block, and names what needs a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from blocks import Grid, Provider, SlurmLogin, Wallet, settings_cache
from deepgrid.lifecycle.job import Label
from deepgrid.provider.session import LOG_RATE_LABEL, ProviderSession
from tasks.offer_settings import read_offer


def block(**values: object) -> Provider:
    login = SlurmLogin(
        host="n1", user="deepgrid", key_file=Path("/k"), known_hosts_file=Path("/h"), grid_root="/g", storage_root="/s"
    )
    prices = {f"{name}_wei_per_minute": "1" for name in ("gpu", "cpu")} | {"mem_wei_per_mb_minute": "1"}
    common = {"grid": Grid(address_book=Path("/b")), "wallet": Wallet(address="0x", key_file=Path("/w"))}
    return Provider(**{"cluster": "alpha", "login": login, "state": Path("/st"), **prices, **common, **values})


async def test_prices_and_labels_are_read_and_other_changes_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "alpha.json"
    monkeypatch.setattr(settings_cache, "cache_file", lambda _: cache)
    stored = block()

    async def load_block(_kind: type[Provider], name: str) -> Provider:
        assert name == "alpha"
        return stored

    monkeypatch.setattr(settings_cache, "load_block", load_block)
    started = block().settings()
    session = cast(ProviderSession, SimpleNamespace(settings=started))
    assert await read_offer(session) == []
    assert session.settings == started

    stored = block(cpu_wei_per_minute="5", labels={"region": "ch"}, max_cut_percent=7, log_kib_per_s=99)
    assert await read_offer(session) == ["max_cut_percent", "log_kib_per_s"]
    now = session.settings
    kept = settings_cache.CachedSettings.model_validate_json(cache.read_bytes()).settings
    assert kept.prices.cpu_wei_per_minute == 5, "a start without Prefect proposes no old price"
    assert (now.prices.cpu_wei_per_minute, Label("region", "ch") in now.labels) == (5, True)
    assert Label(LOG_RATE_LABEL, "256") in now.labels  # this process keeps its rate
    assert replace(now, prices=started.prices, labels=started.labels) == started


@pytest.mark.parametrize("price", ["-1", "1.5", "many", ""])
def test_a_price_that_is_no_amount_of_wei_is_refused(price: str) -> None:
    with pytest.raises(ValueError, match="cpu_wei_per_minute"):
        block(cpu_wei_per_minute=price)
