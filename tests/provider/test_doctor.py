"""`dps provider doctor` on a real chain and a real cluster, without services."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.findings import Finding, Level
from deepgrid.provider.doctor import examine_provider
from tests.provider.scene import Scene


def by_subject(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


async def test_each_part_is_checked_separately(scene: Scene) -> None:
    findings = by_subject(await examine_provider(scene.session.settings))
    assert {name for name, one in findings.items() if one.level is Level.BAD} == {"approval", "services", "storage"}
    assert findings["approval"].words == "This provider is not registered."
    assert findings["gas"].level is Level.GOOD
    assert findings["ends"].level is Level.GOOD


async def test_the_cluster_is_checked_while_the_chain_is_down(scene: Scene, tmp_path: Path) -> None:
    book = AddressBook.load(scene.session.settings.book)
    nowhere = book.model_copy(update={"rpc_url": "http://127.0.0.1:9"})
    settings = dataclasses.replace(scene.session.settings, book=nowhere.save(tmp_path / "nowhere.json"))
    findings = by_subject(await examine_provider(settings))
    assert findings["chain"].level is Level.BAD
    assert findings["slurm"].level is Level.GOOD
