"""`dps services doctor`: a correct set-up, and each fault once."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.cli.main import app
from deepgrid.findings import Finding, Level
from deepgrid.observability.metrics_page import metrics_page
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.doctor import examination
from deepgrid.services.doctor.examination import examine_services
from deepgrid.services.doctor.public_checks import judge_end
from deepgrid.services.edge.listeners import address_of, open_listeners
from deepgrid.services.edge.proxy_file import EdgeLimits, ProxySettings, proxy_file
from deepgrid.services.serve import listening
from deepgrid.services.service_metrics import ServiceMetrics
from deepgrid.services.signing.request_signing import WINDOW_S, Domain
from deepgrid.services.storage.database import Database, Log
from deepgrid.services.storage.vault import Vault
from tests.chain.grid import Grid, running_grid
from tests.services.postgres_support import private_postgres
from tests.services.support import ACCOUNTS, Start, a_job, client_of, rich_chain
from tests.services.support import Grid as Services

NOBODY = "http://127.0.0.1:9"
OLD_TABLES = Path(__file__).parents[1] / "data" / "schema-561a647-sqlite.sql"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("doctor-chain") / "chain") as grid:
        yield grid


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def of(findings: list[Finding], level: Level) -> list[str]:
    return [one.subject for one in findings if one.level is level]


def bad(findings: list[Finding]) -> set[str]:
    """Return the subjects of the lines that are BAD. Checks that each line without GOOD has a next step."""
    assert all(one.next_step for one in findings if one.level is not Level.GOOD and one.subject != "database")
    return set(of(findings, Level.BAD))


def book_of(services: Services, folder: Path, **changes: object) -> Path:
    """Return an address book that leads to running services, on a chain that is down."""
    domain = services.context.domain
    book = AddressBook(
        chain_id=domain.chain_id, rpc_url=NOBODY, meta_scheduler=domain.verifying_contract,
        credit=domain.verifying_contract, provider_manager=domain.verifying_contract,
        definitions_url=services.url, logs_url=services.url,
    )  # fmt: skip
    return book.model_copy(update=changes).save(folder / "book.json")


@pytest.fixture
async def settings(start: Start, tmp_path: Path) -> ServicesSettings:
    """Settings of services that run. Only the chain of the address book is down."""
    services = await start()
    return replace(services.settings, book=book_of(services, tmp_path))


@asynccontextmanager
async def serving(grid: Grid, folder: Path) -> AsyncIterator[ServicesSettings]:
    """Yield services on a real chain, with their metrics."""
    settings = ServicesSettings(f"sqlite:///{folder}/db", folder / "secret", port=0)
    domain = Domain(grid.book.chain_id, grid.book.meta_scheduler)
    with open_listeners(settings) as listeners:
        url = f"http://{address_of(listeners.http)}"
        port = int(url.rpartition(":")[2])
        book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url})
        async with open_services(settings, domain, rich_chain()) as services, listening(services, listeners):
            yield replace(settings, book=book.save(folder / "grid.json"), port=port)


async def test_a_right_set_up_is_ok_in_each_line(chain: Grid, tmp_path: Path, free_port: int) -> None:
    async with serving(chain, tmp_path) as settings, metrics_page(ServiceMetrics().registry, free_port):
        findings = await examine_services(replace(settings, metrics_port=free_port))
    assert of(findings, Level.GOOD) == [
        "programs", "secret", "database", "grid", "sealed", "size", "chain", "clock", "url", "metrics",
    ]  # fmt: skip
    assert of(findings, Level.WARNING) == ["listening", "proxy"]  # a check, without a proxy
    assert len(findings) == 12


async def test_a_chain_that_began_again_is_found(chain: Grid, tmp_path: Path) -> None:
    """Its contracts may have the same addresses, and new jobs the receipts and files of old ones."""
    async with serving(chain, tmp_path) as settings:
        database = Database(settings.database_url)
        async with database.write() as session:
            session.add(Log(job_id=1, claimed_at=3, size=0, final=True, updated_at=int(time.time())))
        await database.aclose()
        found = next(one for one in await examine_services(settings) if one.subject == "grid")
    assert (found.level, found.words) == (Level.WARNING, "The database keeps job 1, and the chain has 0 jobs.")
    assert "a new, empty database (--database)" in found.next_step


async def test_a_chain_that_is_down_hides_nothing_else(settings: ServicesSettings) -> None:
    findings = await examine_services(settings)
    assert bad(findings) == {"chain"}
    assert "url" in of(findings, Level.GOOD)


async def test_nothing_is_made(tmp_path: Path) -> None:
    settings = ServicesSettings(f"sqlite:///{tmp_path}/x/db", tmp_path / "y" / "secret", book=tmp_path / "book.json")
    findings = await examine_services(settings)
    assert bad(findings) == {"book"}
    assert of(findings, Level.WARNING) == ["secret", "listening", "database", "metrics"]
    assert not list(tmp_path.iterdir())


def readable_secret(settings: ServicesSettings, _: Path) -> ServicesSettings:
    settings.secret_file.chmod(0o644)
    return settings


def readable_database(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    (folder / "services.sqlite").chmod(0o644)
    return settings


def sockets_for_everybody(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    (folder / "sockets").mkdir(mode=0o755)
    return replace(settings, sockets=folder / "sockets")


def no_sockets(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    return replace(settings, sockets=folder / "none")


def old_tables(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    with sqlite3.connect(folder / "old") as old:
        old.executescript(OLD_TABLES.read_text())
    (folder / "old").chmod(0o600)
    return replace(settings, database_url=f"sqlite:///{folder}/old")


def no_database(settings: ServicesSettings, _: Path) -> ServicesSettings:
    return replace(settings, database_url="postgresql://grid@127.0.0.1:9/grid")


def strange_url(settings: ServicesSettings, _: Path) -> ServicesSettings:
    return replace(settings, database_url="mysql://there")


def nobody_at_the_url(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    book = AddressBook.load(settings.book).model_copy(update={"definitions_url": NOBODY})
    return replace(settings, book=book.save(folder / "wrong.json"))


def another_grid(settings: ServicesSettings, folder: Path) -> ServicesSettings:
    book = AddressBook.load(settings.book).model_copy(update={"chain_id": 7})
    return replace(settings, book=book.save(folder / "wrong.json"))


FAULTS: dict[Callable[[ServicesSettings, Path], ServicesSettings], str] = {
    readable_secret: "secret",
    readable_database: "file",
    sockets_for_everybody: "listening",
    no_sockets: "listening",
    old_tables: "database",
    no_database: "database",
    strange_url: "database",
    nobody_at_the_url: "url",
    another_grid: "grid url",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_each_fault_is_found(
    fault: Callable[[ServicesSettings, Path], ServicesSettings], settings: ServicesSettings, tmp_path: Path
) -> None:
    findings = await examine_services(fault(settings, tmp_path))
    assert bad(findings) - {"chain"} == set(FAULTS[fault].split())


async def test_a_missing_shellcheck_is_found(
    settings: ServicesSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bad(await examine_services(settings)) == {"chain", "programs"}


async def test_a_secret_file_of_another_database_is_found(settings: ServicesSettings, tmp_path: Path) -> None:
    book = AddressBook.load(settings.book)
    async with client_of(book.definitions_url, ACCOUNTS["customer"]) as customer:
        await customer.upload(a_job())
    assert "sealed" in of(await examine_services(settings), Level.GOOD)
    Vault.open(tmp_path / "other")
    assert bad(await examine_services(replace(settings, secret_file=tmp_path / "other"))) == {"chain", "sealed"}
    assert bad(await examine_services(replace(settings, secret_file=tmp_path / "none"))) == {"chain", "sealed"}


async def test_a_recent_restore_is_told_while_requests_are_refused(settings: ServicesSettings) -> None:
    database = Database(settings.database_url)
    try:
        await database.end_restore(int(time.time()) - WINDOW_S - 1)
        assert "restore" not in of(await examine_services(settings), Level.WARNING)
        await database.end_restore(int(time.time()))
        assert "restore" in of(await examine_services(settings), Level.WARNING)
    finally:
        await database.aclose()


async def test_a_full_disk_is_found(settings: ServicesSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "FULL_DISK_MIB", 2**60)
    monkeypatch.setattr(examination, "LOW_DISK_MIB", 2**60)
    assert bad(await examine_services(settings)) == {"chain", "size"}


async def test_a_port_of_another_program_has_no_metrics(settings: ServicesSettings) -> None:
    port = int(AddressBook.load(settings.book).definitions_url.rpartition(":")[2])
    findings = await examine_services(replace(settings, metrics_port=port))
    assert "metrics" in of(findings, Level.WARNING)


@pytest.mark.parametrize("in_book", [False, True])
async def test_certificates_tell_when_they_end(
    in_book: bool, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = await start(edge=EdgeLimits(), tls=True)
    assert services.authority is not None
    if not in_book:
        monkeypatch.setenv("SSL_CERT_FILE", str(services.authority))
    book = book_of(services, tmp_path, authorities=services.authority.read_text() if in_book else None)
    findings = await examine_services(replace(services.settings, book=book), services.authority.with_name("proxy.conf"))
    assert bad(findings) == {"chain"}
    assert {"listening", "proxy"} <= set(of(findings, Level.GOOD))
    assert "tls" in of(findings, Level.WARNING)  # it is valid for two days


async def test_what_runs_in_front_must_be_the_file_of_this_release(start: Start, tmp_path: Path) -> None:
    services = await start(edge=EdgeLimits())
    assert services.settings.sockets is not None
    settings = replace(services.settings, book=book_of(services, tmp_path))
    chosen = ProxySettings(sockets=(services.settings.sockets,), listen=("127.0.0.1:1",))
    file = tmp_path / "proxy.conf"
    for text, level, words in (
        (proxy_file(chosen), Level.BAD, "runs another file"),
        (proxy_file(chosen).replace("limit_req zone", "# limit_req zone"), Level.BAD, "it was changed"),
        (proxy_file(chosen.model_copy(update={"sockets": (tmp_path,)})), Level.BAD, "does not lead to"),
        ("server {}\n", Level.BAD, "not made by this release"),
        (None, Level.WARNING, "not checked"),
    ):
        if text is not None:
            file.write_text(text)
        findings = await examine_services(settings, file if text is not None else None)
        [found] = [one for one in findings if one.subject == "proxy"]
        assert (found.level, words in found.words) == (level, True), found


def test_an_ended_certificate_is_bad() -> None:
    now = datetime.now(UTC)
    assert judge_end(now - timedelta(days=2), "It").level is Level.BAD
    assert judge_end(now + timedelta(days=90), "It").level is Level.GOOD


async def test_postgresql_has_a_clock_and_a_size(settings: ServicesSettings) -> None:
    with private_postgres() as url:
        on_postgres = replace(settings, database_url=url)
        assert bad(await examine_services(on_postgres)) == {"chain"}
        database = Database(url)
        await database.prepare()
        await database.aclose()
        findings = await examine_services(on_postgres)
    assert bad(findings) == {"chain"}
    assert {"clock", "size"} <= set(of(findings, Level.GOOD))
    assert "grid" in of(findings, Level.WARNING)  # no services have served it


def test_the_command_fails_when_a_line_is_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["services", "doctor", "--database", f"sqlite:///{tmp_path}/db", "--secret-file", str(tmp_path / "secret")]
    with pytest.raises(SystemExit) as ended:
        app([*words, "--book", str(tmp_path / "none.json"), "--json"])
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert {one["level"] for one in json.loads(told.out)} == {"good", "warning", "bad"}
    assert told.err == "dps: 1 of 6 findings keep the services from working.\n"
