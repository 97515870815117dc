"""`dps provider doctor` on a real chain and a real cluster, without services."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.offers import Versions
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.provider.doctor import examine_provider, examine_services, judge_published_key
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


@pytest.mark.situation(
    "doctor", "no key for private files is published, or a wrong one", "a warning: which jobs the cluster does not get"
)
def test_the_published_key_for_private_files_is_judged() -> None:
    wallet, other = (Wallet(bytes([number]) * 32) for number in (1, 2))

    def offer(*labels: Label) -> Provider:
        return Provider(wallet.address, Hardware((), (), ()), Prices(1, 1, 1), labels, approved=True, banned=False)

    without, wrong = offer(), offer(Label(PRIVATE, other.public_key.hex()))
    good = offer(Label(PRIVATE, wallet.public_key.hex()))
    assert judge_published_key(Versions(None, None)) == []
    for versions, level, words in (
        (Versions(good, None), Level.GOOD, "is published and readable"),
        (Versions(good, without), Level.GOOD, "is published and readable"),
        (Versions(without, good), Level.WARNING, "until it is approved"),
        (Versions(None, good), Level.WARNING, "until it is approved"),
        (Versions(wrong, None), Level.WARNING, "is not the public key of this provider's account"),
        (Versions(without, None), Level.WARNING, "has published no key"),
    ):
        (finding,) = judge_published_key(versions)
        assert (finding.level, words in finding.words) == (level, True), finding


async def test_the_cluster_is_checked_while_the_chain_is_down(scene: Scene, tmp_path: Path) -> None:
    book = AddressBook.load(scene.session.settings.book)
    nowhere = book.model_copy(update={"rpc_url": "http://127.0.0.1:9"})
    settings = dataclasses.replace(scene.session.settings, book=nowhere.save(tmp_path / "nowhere.json"))
    findings = by_subject(await examine_provider(settings))
    assert findings["chain"].level is Level.BAD
    assert findings["slurm"].level is Level.GOOD
