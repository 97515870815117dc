"""Texts of strangers never reach the terminal as sequences: names, labels, remarks, errors and logs."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import AsyncGrid, JobStatus
from deepgrid.lifecycle.job import Label
from tests.appending import push_log
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, EXAMPLE, HARDWARE, PRICES, Live, Party, party
from tests.client.stage import Customer
from tests.tui.hostile_texts import PAYLOADS
from tests.tui.terminal import SEQUENCE, Terminal, dps

HARMLESS = dict.fromkeys(PAYLOADS, "text")
ROW = re.compile(r"0x\w{4}\.\.\w{4}")  # of the table of clusters, below its heading
JOBS, CLUSTERS = "p clusters", "ctrl+r read again"  # keys of these screens: written once, when the screen opens
CONTROLS = re.compile("[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Strangers:
    """Writes texts wherever strangers can."""

    live: Live
    chain: Chain
    operator: Party

    async def write(self, grid: AsyncGrid, texts: dict[str, str]) -> int:
        """Create jobs and a cluster with these texts. Returns the id of the newest job."""
        whole = "".join(texts.values())
        await self.operator.writer.mint(grid.address, 2000 * CREDIT)
        cluster = party(self.chain, self.live.grid.new_key(f"stranger-{abs(hash(whole))}"))
        try:
            labels = [Label("name", whole[:60]), *(Label(f"x{key[:8]}", text) for key, text in texts.items())]
            await cluster.writer.register(HARDWARE, PRICES, labels)
            await approve_waiting(self.operator.writer, cluster.address)
            for name, text in texts.items():
                last = await grid.submit(EXAMPLE, credits=100, name=text.encode()[:31].decode(errors="ignore") or name)
                if name == "title":
                    await self.operator.writer.panic_job(last.id, whole[:200])
                elif name == "clear":
                    await last.cancel()
            await self.operator.services.post_notice(last.id, "waiting", whole)
            await self.operator.writer.meta_schedule(last.id, cluster.address)
            await cluster.writer.claim_next()
            await cluster.writer.set_running(last.id, 0)
            log = "\n".join(f"{key} {text} \x1b[31mcolour\x1b[0m" for key, text in texts.items())
            await push_log(cluster.services, last.id, 0, log.encode() + b"\n\xff\xfe end of log\n", final=True)
            await cluster.writer.settle(last.id, JobStatus.FAILED, 1, whole[:200], 256)
        finally:
            await cluster.close()
        return last.id


@pytest.fixture
def strangers(live: Live, chain: Chain, operator: Party) -> Strangers:
    return Strangers(live, chain, operator)


def visit(customer: Customer, tmp_path: Path) -> bytes:
    """Return the bytes of a visit to the screens that show texts of strangers."""
    environment = {
        **os.environ, "HOME": str(tmp_path), "DEEPGRID_BOOK": str(customer.book), "DPS_KEY_FILE": str(customer.key),
        "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
    }  # fmt: skip
    environment.pop("NO_COLOR", None)
    with Terminal(dps("tui"), environment, cwd=str(tmp_path), size=(100, 40)) as terminal:
        terminal.shows("allowance", "failed")
        for keys, words in (("\r", "end of log"), ("q", JOBS), ("l", "Last lines"), ("q", JOBS)):
            terminal.type(keys)
            terminal.shows(words)
        for keys, words in (("v", "life"), ("q", JOBS), ("p", "broke")):
            terminal.type(keys)
            terminal.shows(words)
        terminal.until(lambda: ROW.search(terminal.text.rpartition("broke")[2]), "no cluster in the table")
        for keys, words in (("G\r", "record      "), ("\x11", CLUSTERS), ("q", JOBS)):
            terminal.type(keys)
            terminal.shows(words)
        terminal.type("q")
        assert terminal.ended() == 0
        return terminal.bytes


def kinds(written: bytes) -> set[bytes]:
    """Return the kinds of sequences, without their figures, which are places and colours."""
    return {re.sub(rb"[0-9;]+(?=[mH])", b"#", found) for found in SEQUENCE.findall(written)}


@pytest.mark.long
async def test_only_the_sequences_of_harmless_texts_are_written(
    strangers: Strangers, customer: Customer, grid: AsyncGrid, tmp_path: Path
) -> None:
    await strangers.write(grid, HARMLESS)
    harmless = await asyncio.to_thread(visit, customer, tmp_path)
    await strangers.write(grid, PAYLOADS)
    hostile = await asyncio.to_thread(visit, customer, tmp_path)
    assert kinds(hostile) <= kinds(harmless)
    rest = SEQUENCE.sub(b"", hostile)
    assert not CONTROLS.findall(rest.decode(errors="replace").replace("\r\n", ""))
    assert b"[bold red]x" in rest  # text, not markup
