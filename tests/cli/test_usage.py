"""Verbs and options without a grid: files, keys, usage, and the few imports that they need."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.wallet import Wallet
from tests.cli.support import Invoke

A = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
EXAMPLE = Path(__file__).parents[2] / "examples" / "hello-world.yaml"
URLS = [part for name in ("rpc", "definitions", "logs") for part in (f"--{name}-url", "http://127.0.0.1:1")]


def _book(**changes: object) -> AddressBook:
    fields: dict[str, object] = {
        "chain_id": 1, "rpc_url": "http://127.0.0.1:1", "meta_scheduler": A, "credit": A, "provider_manager": A,
        "definitions_url": "http://127.0.0.1:1", "logs_url": "http://127.0.0.1:1",
    }  # fmt: skip
    return AddressBook.model_validate(fields | changes)


def test_help_of_everything(invoke: Invoke) -> None:
    groups = ("job", "credit", "allowance", "key", "provider", "operator", "services")
    for words in ((), ("submit",), ("validate",), ("init",), *((group,) for group in groups)):
        result = invoke(*words, "--help")
        assert result.exit_code == 0, words
        assert "Usage: dps" in result.output or "Usage: root" in result.output
    assert "--private-key" not in invoke("submit", "--help").output


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("nonsense",), "No such command 'nonsense'. See `"),
        (("submit",), "Missing argument 'FILE'"),
        (("operator", "deploy"), "A new address book needs --rpc-url."),
        (("operator", "deploy", *URLS), "No address would assign jobs. Name --operator or --assign."),
        (("operator", "deploy", *URLS, "--assign", A), "No address would approve providers."),
        (("operator", "deploy", *URLS, "--operator", "x"), "'x' is not an address."),
        (("submit", EXAMPLE), "Give --credits or --credits-wei"),
        (("submit", EXAMPLE, "--credits", "1", "--credits-wei", "1"), "not both"),
        (("submit", EXAMPLE, "--credits", "1e2"), "'1e2' is not an amount"),
        (("submit", EXAMPLE, "--credits-wei", "0.5"), "'0.5' is not an amount of wei"),
        (("submit", EXAMPLE, "--credits", "100", "--uses", "os"), "'os' is not a label"),
        (("submit", EXAMPLE, "--credits", "100", "--affinities", "os"), "'os' is not a condition"),
        (("submit", EXAMPLE, "--credits", "100", "--private-key", "0x1"), "No such option"),
        (("submit", "none.yaml", "--credits", "100"), "none.yaml: there is no such file"),
        (("submit", EXAMPLE, "--credits", "100"), "There is no key file"),
        (("job", "get", "one"), "ID"),
        (("job", "panic", "1", "power cut", "--reason", "fire"), "The reason is given twice."),
        (("job", "list", "--watch", "--json"), "--watch prints no JSON."),
        (("job", "get", "0"), "ID"),
        (("credit", "transfer", "0x12", "1"), "'0x12' is not an address"),
        (("credit", "transfer", A.replace("F", "f", 1), "1"), "wrong checksum"),
        (("validate", "none.yaml"), "none.yaml: there is no such file"),
        (("key", "show"), "dps key create"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_status_2(invoke: Invoke, args: tuple[str | Path, ...], complaint: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.startswith("dps: ") and result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_broken_yaml_is_named_with_line_and_column(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("steps: [\n  a: b: c")
    result = invoke("submit", "broken.yaml", "--credits", "100")
    assert result.exit_code == 2
    assert result.stderr.startswith("dps: broken.yaml:2:7: ") and result.stderr.count("\n") == 1


def test_every_fault_of_a_file_is_said_at_once(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 10, gpus: 0}\nenableLoging: true\nsteps:\n  - nme: x\n"
    )
    for verb in (("validate", "job.yaml"), ("submit", "job.yaml", "--credits", "100")):
        result = invoke(*verb)
        assert result.exit_code == 2
        first, second = result.stderr.splitlines()
        assert first == "dps: job.yaml:2:1: enableLoging: unknown field (did you mean 'enableLogging'?)"
        assert second.startswith("dps: job.yaml:4:5: steps[0].nme: unknown field")


def test_a_key_that_others_may_read_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    key = tmp_path / "key"
    Wallet.create(key)
    key.chmod(0o640)
    for verb in (("key", "show"), ("credit", "get"), ("submit", EXAMPLE, "--credits", "100")):
        result = invoke(*verb, "--key", key)
        assert result.exit_code == 2
        assert f"chmod 600 {key}" in result.stderr


def test_key_create_makes_a_private_file_once(invoke: Invoke, tmp_path: Path) -> None:
    made = invoke("key", "create")
    file = tmp_path / ".dps" / "key"
    assert made.exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert invoke("key", "show").stdout == made.stdout == f"{Wallet.load(file).address}\n"
    assert file.read_text().strip() not in made.output
    assert invoke("key", "create").exit_code == 2


def test_book_that_is_missing_or_leads_nowhere(invoke: Invoke, tmp_path: Path) -> None:
    invoke("key", "create")
    missing = invoke("credit", "get")
    assert (missing.exit_code, "no address book" in missing.stderr) == (2, True)
    _book().save(tmp_path / ".dps" / "grid.json")
    silent = invoke("credit", "get")
    assert (silent.exit_code, "cannot be reached" in silent.stderr) == (2, True)


def test_init_writes_a_file_that_is_valid_and_never_replaces_one(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for options, file in (
        ((), "job.yaml"),
        (("-o", "other.yaml"), "other.yaml"),
        (("-o", "folder"), "folder/job.yaml"),
    ):
        result = invoke("init", *options)
        assert (result.exit_code, result.stdout) == (0, f"{file}\n")
        assert invoke("validate", file).stdout.startswith("valid\n")
    again = invoke("init")
    assert (again.exit_code, "job.yaml exists" in again.stderr) == (2, True)


def test_help_imports_nothing_heavy() -> None:
    heavy = (
        "prefect",
        "pandas",
        "web3",
        "httpx",
        "pydantic",
        "eth_account",
        "sqlalchemy",
        "paramiko",
        "fastapi",
        "textual",
    )
    program = (
        "import sys\nfrom deepgrid.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_customers_never_import_prefect() -> None:
    program = (
        "import sys, deepgrid.cli.main, deepgrid.client.engine.live\n"
        "import deepgrid.cli.verbs.job, deepgrid.cli.verbs.submit\n"
        "print([name for name in ('prefect', 'pandas', 'deployments', 'fastapi', 'paramiko') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("verbs", ["job", "money"])
def test_verbs_that_only_read_do_not_load_the_workflow_language(verbs: str) -> None:
    heavy = ("jinja2", "yaml", "httpx", "deepgrid.workflow", "deepgrid.modules", "deepgrid.sbatch", "eth_account")
    program = f"import sys, deepgrid.cli.verbs.{verbs}\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_serving_needs_a_prefect_server_that_answers(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "DO_NOT_TRACK": "1"}
    argv = [sys.executable, "-m", "deepgrid.cli", "provider", "serve", "alpha"]
    for api_url, complaint in ((None, "Set PREFECT_API_URL"), ("http://127.0.0.1:1/api", "does not answer")):
        there = environment | ({"PREFECT_API_URL": api_url} if api_url else {})
        done = subprocess.run(argv, capture_output=True, text=True, env=there, check=False)
        assert done.returncode == 2
        assert complaint in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("custom-webhook/ops",), ("--off",)])
def test_notifications_need_a_prefect_server_that_answers(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    """In this process, because a new one takes seconds to import Prefect."""
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        done = invoke("operator", "notify", *arguments)
    assert (done.exit_code, done.stderr) == (2, "dps: The Prefect server at http://127.0.0.1:1/api does not answer.\n")
