"""Idempotency keys: their salts, their journal and their lock."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.engine.idempotency import IdempotencyKey, Journal, Use, key_lock, random_key
from deepgrid.errors import ConfigurationError, GridError, InputError

ADDRESS = "0x" + "1" * 40
BOOK = AddressBook(
    chain_id=1, rpc_url="http://127.0.0.1:1", meta_scheduler=ADDRESS, credit=ADDRESS, provider_manager=ADDRESS,
    first_block=0, definitions_url="http://127.0.0.1:1", logs_url="http://127.0.0.1:1",
)  # fmt: skip


def key(text: str, wallet: Wallet | None = None, use: str = "submit", **book: object) -> IdempotencyKey:
    return IdempotencyKey(wallet or Wallet(b"\1" * 32), BOOK.model_copy(update=book), use, text)


def test_a_salt_follows_from_wallet_grid_use_text_occurrence_and_attempt() -> None:
    salts = [
        key("a").salt(), key("b").salt(), key("a", use="map").salt(), key("a", Wallet(b"\2" * 32)).salt(),
        key("a", chain_id=2).salt(), key("a", meta_scheduler="0x" + "2" * 40).salt(), key("a").salt(1),
        key("a").salt(0, 1),
    ]  # fmt: skip
    assert len(set(salts)) == len(salts)
    assert {len(salt) for salt in salts} == {32}
    assert key("a").salt() == key("a", meta_scheduler=ADDRESS.upper().replace("X", "x")).salt()
    assert random_key() != random_key()


@pytest.mark.parametrize("text", ["", "x" * 1001, 7, None])
def test_texts_that_are_no_keys_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="1 to 1000 characters"):
        key(text)


def test_a_key_with_strange_letters_works_and_is_not_shown() -> None:
    strange = key("\udcff secret é")
    assert len(strange.salt()) == 32
    assert "secret" not in repr(strange) + strange.id


def test_the_journal_remembers_the_last_use_of_each_key_privately(tmp_path: Path) -> None:
    folder = tmp_path / "key.idempotency"
    Journal(folder).record("k", Use("f", "h"))
    Journal(folder).record("k", Use("g", "i"))
    assert Journal(folder).find("k") == Use("g", "i")
    assert Journal(folder).find("other") is None
    assert Journal(None).find("k") is None
    Journal(None).record("k", Use("f", "h"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_the_journal_survives_a_write_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.record(f"k{number}", Use("f", "h"))
    file = tmp_path / "journal"
    file.write_bytes(file.read_bytes()[:-cut])
    journal.record("k3", Use("f", "h"))
    assert [journal.find(f"k{number}") is not None for number in range(4)] == [True, True, cut <= 1, True]


def test_the_journal_keeps_only_the_newest_keys(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_keys=10)
    for number in range(100):
        journal.record(f"k{number}", Use("f", str(number)))
    lines = (tmp_path / "journal").read_text().splitlines()
    assert len(lines) <= 21
    assert json.loads(lines[-1])["key"] == "k99"
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600
    assert journal.find("k95") == Use("f", "95")
    assert journal.find("k1") is None


async def test_one_holder_at_a_time_among_tasks(tmp_path: Path) -> None:
    inside, most, turns = 0, 0, 0

    async def work() -> None:
        nonlocal inside, most, turns
        async with key_lock(tmp_path, "k", 60):
            inside += 1
            most, turns = max(most, inside), turns + 1
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(10)))
    assert (most, turns) == (1, 10)
    assert list(tmp_path.iterdir()) == []


async def test_a_lock_ends_with_its_process_and_others_wait_for_a_limited_time(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from deepgrid.client.engine.idempotency import key_lock\n"
        "async def hold():\n"
        "    async with key_lock(Path(sys.argv[1]), 'k', 1):\n"
        "        print('held', flush=True); await asyncio.sleep(600)\n"
        "asyncio.run(hold())"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(GridError, match="has not ended for 0 s") as waited:
                async with key_lock(tmp_path, "k", 0.2):
                    pass
            assert waited.value.transient
            async with key_lock(tmp_path, "another key", 0.2), key_lock(None, "k", 0.2):
                pass
        finally:
            holder.kill()
    async with key_lock(tmp_path, "k", 60):
        pass


def test_a_folder_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        Journal(tmp_path / "file").record("k", Use("f", "h"))
