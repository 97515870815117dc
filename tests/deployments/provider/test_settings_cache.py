"""A supervisor that has started once can start again while Prefect is down, with cached settings."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from blocks import Grid, Provider, SlurmLogin, Wallet, settings_cache
from blocks.settings_cache import cache_file, provider_settings
from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import Label

NO_SERVER = "http://127.0.0.1:1/api"

BLOCK = Provider(
    cluster="alpha",
    grid=Grid(address_book=Path("/grid.json")),
    wallet=Wallet(address="0x" + "ab" * 20, key_file=Path("/keys/alpha")),
    login=SlurmLogin(
        host="login.example.org", user="deepgrid", key_file=Path("/keys/ssh"), known_hosts_file=Path("/keys/known"),
        grid_root="/srv/deepgrid", storage_root="/srv/storage", partition="main", mirrors={"docker.io": "https://m"},
        account_table={"0x" + "cd" * 20: "alice"}, account_pattern="ds-{digits:24}", become="sudo",
    ),
    gpu_wei_per_minute=str(10**18 + 1), cpu_wei_per_minute="7", mem_wei_per_mb_minute="0",
    labels={"region": "ch"}, state=Path("/state"),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A machine whose Prefect server does not answer."""
    with temporary_settings({PREFECT_HOME: tmp_path, PREFECT_API_URL: NO_SERVER}):
        yield tmp_path


async def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(kind: type[Provider], name: str) -> Provider:
        assert (kind, name) == (Provider, "alpha")
        return BLOCK

    with monkeypatch.context() as patch:
        patch.setattr(settings_cache, "load_block", answer)
        assert await provider_settings("alpha") == BLOCK.settings()


async def test_cached_settings_are_used_while_prefect_is_down(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await loaded_once(monkeypatch)
    assert await provider_settings("alpha") == BLOCK.settings()
    assert "Using cached settings for cluster alpha; Prefect is not reachable: The Prefect server" in caplog.text
    assert stat.S_IMODE(cache_file("alpha").stat().st_mode) == 0o600


def test_customers_see_how_fast_output_is_delivered() -> None:
    faster = BLOCK.model_copy(update={"log_kib_per_s": 512, "labels": {"region": "ch", "logs.bw.kibps": "9999"}})
    assert faster.settings().log_kib_per_s == 512
    assert Label("logs.bw.kibps", "512") in faster.settings().labels
    assert Label("logs.bw.kibps", "256") in BLOCK.settings().labels


def test_whether_customers_get_into_their_jobs_is_a_label() -> None:
    assert Label("sessions", "true") in BLOCK.settings().labels
    closed = BLOCK.model_copy(update={"sessions": False, "labels": {"sessions": "true"}}).settings()
    assert Label("sessions", "false") in closed.labels
    assert not closed.sessions


async def test_a_first_start_needs_prefect(home: Path) -> None:
    with pytest.raises(ServiceError, match="does not answer"):
        await provider_settings("alpha")


async def test_settings_of_another_prefect_server_are_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await loaded_once(monkeypatch)
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:2/api"}), pytest.raises(ServiceError):
        await provider_settings("alpha")


async def test_a_damaged_file_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await loaded_once(monkeypatch)
    cache_file("alpha").write_text('{"prefect": ')
    with pytest.raises(ServiceError):
        await provider_settings("alpha")


async def test_a_cache_that_cannot_be_written_does_not_prevent_a_start(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "deepgrid").write_text("in the way")
    await loaded_once(monkeypatch)
    assert "cannot be written" in caplog.text
