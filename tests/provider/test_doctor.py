"""`dps provider doctor` on a real chain and a real cluster, without services."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.findings import Finding, Level
from deepgrid.provider.doctor import examine_provider, examine_services
from tests.provider.scene import Scene


def by_subject(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


async def test_each_part_is_checked_separately(scene: Scene) -> None:
    findings = by_subject(await examine_provider(scene.session.settings))
    assert {name for name, one in findings.items() if one.level is Level.BAD} == {"approval", "services", "storage"}
    assert findings["approval"].words == "This provider is not registered."
    assert findings["gas"].level is Level.GOOD
    assert findings["ends"].level is Level.GOOD


@pytest.mark.situation("doctor", "the URL of the services is wrong", "BAD: what is lost, and which setting to check")
async def test_a_wrong_url_of_the_services_is_explained(scene: Scene) -> None:
    settings = dataclasses.replace(scene.session.settings, services_url="http://127.0.0.1:9")
    book, wallet = AddressBook.load(settings.book), Wallet.load(settings.key_file)
    (finding,) = await examine_services(book, wallet, settings.services_url)
    assert finding.words.startswith("The grid's services at http://127.0.0.1:9 do not answer. No job's script")
    assert "Check services of the provider block" in finding.next_step


async def test_the_cluster_is_checked_while_the_chain_is_down(scene: Scene, tmp_path: Path) -> None:
    book = AddressBook.load(scene.session.settings.book)
    nowhere = book.model_copy(update={"rpc_url": "http://127.0.0.1:9"})
    settings = dataclasses.replace(scene.session.settings, book=nowhere.save(tmp_path / "nowhere.json"))
    findings = by_subject(await examine_provider(settings))
    assert findings["chain"].level is Level.BAD
    assert findings["slurm"].level is Level.GOOD
