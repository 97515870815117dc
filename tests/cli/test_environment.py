"""The existing client's variables and `.env` files name the grid and the key, as for that client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from tests.cli.live import Dps, Live, Outcome, finished
from tests.cli.support import Invoke

KEY = "0x" + "11" * 32
ADDRESS = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"


@dataclass(frozen=True)
class Existing(Dps):
    """The command with the variables of the existing client, and no others."""

    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, dps: Dps, variables: dict[str, str] | None = None) -> Existing:
        """Return the command of `dps` with these variables."""
        return cls(dps.home, dps.book, dps.key, variables or {}, forker=dps.forker)

    @property
    def environment(self) -> dict[str, str]:
        own = ("DEEPGRID_BOOK", "DPS_KEY_FILE")
        return {name: value for name, value in super().environment.items() if name not in own} | self.variables


def variables_of(live: Live, key: Path) -> dict[str, str]:
    book = live.address_book()
    return {
        "METASCHEDULER_RPC": book.rpc_url, "METASCHEDULER_WS": book.rpc_url.replace("http", "ws"),
        "METASCHEDULER_SMART_CONTRACT": book.meta_scheduler.lower(),
        "SBATCH_ENDPOINT": f"{book.definitions_url}/graphql", "LOGGER_ENDPOINT": "http://127.0.0.1:1",
        "ETH_PRIVATE_KEY_PATH": str(key),
    }  # fmt: skip


@pytest.fixture
def existing(live: Live, dps: Dps) -> Existing:
    return Existing.of(dps, variables_of(live, dps.key))


def write_env(folder: Path, variables: dict[str, str], name: str = ".env", mode: int = 0o600) -> None:
    path = folder / name
    path.write_text("".join(f"{name}='{value}'\n" for name, value in variables.items()))
    path.chmod(mode)


async def run(dps: Dps, *args: str) -> Outcome:
    return await finished(await dps.start(*args))


async def test_the_variables_name_grid_and_key(live: Live, existing: Existing) -> None:
    outcome = await run(existing, "credit", "get")
    assert outcome == Outcome(0, "1000\n", "")
    [file] = (existing.home / ".dps" / "grids").iterdir()
    found, book = json.loads(file.read_text()), live.address_book()
    assert (found["credit"], found["provider_manager"]) == (book.credit, book.provider_manager)
    assert (found["chain_id"], found["definitions_url"]) == (book.chain_id, book.definitions_url)
    assert found["logs_url"] == book.definitions_url  # the other port speaks no HTTP


async def test_a_job_is_submitted_with_them(existing: Existing) -> None:
    assert (await run(existing, "init")).status == 0
    submitted = await run(existing, "submit", "job.yaml", "--credits", "100")
    assert (submitted.status, submitted.out.startswith("job ")) == (0, True), submitted
    assert "job" in (await run(existing, "job", "list", "--state", "pending,running")).out
    none = await run(existing, "job", "list", "--state", "finished")
    assert (none.status, none.out, none.err) == (0, "", "You have no jobs in these states.\n")


async def test_an_env_file_works_as_the_variables_do_and_is_named(dps: Dps, existing: Existing) -> None:
    bare = Existing.of(dps)
    write_env(dps.home, existing.variables)
    outcome = await run(bare, "credit", "get")
    contract = existing.variables["METASCHEDULER_SMART_CONTRACT"]
    assert outcome == Outcome(0, "1000\n", f"dps: using the grid that .env names, with the contract {contract}\n")


async def test_credits_as_json(existing: Existing) -> None:
    outcome = await run(existing, "credit", "get", "--json")
    found = json.loads(outcome.out)
    assert (found["credits"], found["credits_wei"]) == ("1000", "1000000000000000000000")


async def test_the_order_is_options_own_variables_theirs_files(dps: Dps, existing: Existing) -> None:
    wrong = dict.fromkeys(("METASCHEDULER_RPC", "SBATCH_ENDPOINT"), "http://127.0.0.1:1")
    write_env(dps.home, existing.variables | wrong)
    assert (await run(existing, "credit", "get")).out == "1000\n"  # the environment before the file
    misled = Existing.of(dps, existing.variables | wrong)
    assert "cannot be reached" in (await run(misled, "credit", "get")).err
    assert (await run(misled, "credit", "get", "--book", str(dps.book))).out == "1000\n"
    own = Existing.of(dps, misled.variables | {"DEEPGRID_BOOK": str(dps.book)})
    assert (await run(own, "credit", "get")).out == "1000\n"
    write_env(dps.home, existing.variables, ".env.local")
    assert (await run(Existing.of(dps), "credit", "get")).out == "1000\n"


async def test_a_contract_that_is_none_is_said(existing: Existing) -> None:
    variables = existing.variables | {"METASCHEDULER_SMART_CONTRACT": ADDRESS}
    outcome = await run(Existing.of(existing, variables), "credit", "get")
    assert (outcome.status, outcome.err) == (2, f"dps: There is no MetaScheduler contract at {ADDRESS}.\n")


def test_a_missing_or_wrong_variable_is_named(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASCHEDULER_RPC", "http://127.0.0.1:1")
    missing = invoke("provider", "list")
    assert missing.exit_code == 2
    assert "METASCHEDULER_RPC is set, but METASCHEDULER_SMART_CONTRACT and SBATCH_ENDPOINT not." in missing.stderr
    monkeypatch.setenv("METASCHEDULER_SMART_CONTRACT", "0x12")
    monkeypatch.setenv("SBATCH_ENDPOINT", "http://127.0.0.1:1/graphql")
    wrong = invoke("provider", "list")
    assert "METASCHEDULER_SMART_CONTRACT is not an address" in wrong.stderr


def test_an_env_file_that_others_can_read_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    write_env(tmp_path, {"METASCHEDULER_RPC": "http://127.0.0.1:1"}, mode=0o644)
    refused = invoke("provider", "list")
    assert (refused.exit_code, "Others can read or change .env, which sets METASCHEDULER_RPC" in refused.stderr) == (
        2, True,
    )  # fmt: skip
    assert invoke("init").exit_code == 0  # needs no grid
    write_env(tmp_path, {"OTHER": "x"}, mode=0o644)
    assert "There is no address book" in invoke("provider", "list").stderr


def test_the_plain_key_variable_is_never_used(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETH_PRIVATE_KEY", KEY)
    refused = invoke("key", "show")
    assert refused.exit_code == 2
    assert "ETH_PRIVATE_KEY is not used: other programs can see it." in refused.stderr
    assert "`printenv ETH_PRIVATE_KEY | dps key import`" in refused.stderr
    Wallet.create(tmp_path / ".dps" / "key")
    assert "hold different keys" in invoke("key", "show").stderr
    assert KEY[2:] not in refused.output + invoke("key", "show").output


def test_a_key_in_the_environment_that_a_file_holds_too_is_a_warning(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepgrid.cli.access.environment._warned", set())
    Wallet.keep(KEY, tmp_path / ".dps" / "key")
    write_env(tmp_path, {"ETH_PRIVATE_KEY": KEY})
    shown = invoke("key", "show")
    assert (shown.exit_code, shown.stdout) == (0, f"{ADDRESS}\n")
    assert "ETH_PRIVATE_KEY of .env is set, and other programs can see its value. It is not used" in shown.stderr


class Oracle(BaseHTTPRequestHandler):
    """A queue oracle that knows only the jobs."""

    def do_GET(self) -> None:
        body = json.dumps({f"0x{job_id:064x}": "any" for job_id in (3, 4, 5)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def oracle() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Oracle)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/any/path"
    finally:
        server.shutdown()
        server.server_close()


async def test_the_oracle_of_the_variable_is_asked(dps: Dps, job_id: int) -> None:
    with oracle() as url:
        asking = Existing.of(dps, {
            "METASCHEDULER_ORACLE": url, "DEEPGRID_BOOK": str(dps.book), "DPS_KEY_FILE": str(dps.key),
        })  # fmt: skip
        outcome = await run(asking, "job", "get", str(job_id))
    assert "3 jobs in the grid, assigned to clusters or running" in outcome.out
    silent = await run(asking, "job", "get", str(job_id))
    assert (silent.status, "queue  " in silent.out) == (0, False)
