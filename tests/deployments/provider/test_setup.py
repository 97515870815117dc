"""The settings file of `dps provider init` and the command without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blocks import Provider, SlurmLogin
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError, InputError
from deployments.provider.setup.answer_checks import check
from deployments.provider.setup.document import Document
from deployments.provider.setup.prefect_plan import blocks_of, deployments_of
from deployments.provider.setup.provider_questions import QUESTIONS

ANSWERS = {
    "cluster": "gamma", "prefect.api_url": "http://127.0.0.1:4200/api", "grid.address_book": "grid.json",
    "login.host": "login.example.org", "login.port": "2222", "login.user": "deepgrid", "login.key_file": "id",
    "login.known_hosts_file": "known", "login.partition": "gpu", "login.grid_root": "/srv/grid",
    "login.storage_root": "/srv/storage", "prices.cpu": "0.95", "prices.memory_mb": "0.00008", "prices.gpu": "8.5",
    "supervisor.state": "state", "supervisor.metrics_port": "9464", "supervisor.trust_customers": "yes",
}  # fmt: skip


def written(tmp_path: Path) -> Document:
    """Return a settings file with all answers."""
    key = Wallet.create(tmp_path / "key").key_file
    document = Document.read(tmp_path / "provider.toml")
    for name, text in {**ANSWERS, "grid.key_file": str(key), "labels.region": "ch"}.items():
        document.set(name, text)
    document.write()
    return document


def test_the_way_to_the_login_nodes_is_read(tmp_path: Path) -> None:
    """Several login nodes behind a jump host with an account and a key of its own."""
    document = Document.read(written(tmp_path).path)
    document.set("login.host", "login1.example.org, login2.example.org")
    document.set("login.jump_host", "hop@[2001:db8::7]:2200")
    document.set("login.jump_key_file", str(tmp_path / "hop"))
    login = next(block for block in blocks_of(document.values()) if isinstance(block, SlurmLogin)).settings()
    assert (login.host, login.other_hosts, login.keepalive_s) == ("login1.example.org", ("login2.example.org",), 15)
    assert login.jump is not None
    assert (str(login.jump), login.jump.user) == ("jump host 2001:db8::7:2200", "hop")
    assert (login.jump.key_file, login.jump.known_hosts_file) == (tmp_path / "hop", login.known_hosts_file)


@pytest.mark.parametrize(("field", "value"), [("jump_host", "a,b"), ("jump_host", "a:b:c"), ("host", " , ")])
def test_hosts_that_cannot_be_read_are_refused(tmp_path: Path, field: str, value: str) -> None:
    document = Document.read(written(tmp_path).path)
    document.set(f"login.{field}", value)
    with pytest.raises(ConfigurationError, match="login node|jump host"):
        blocks_of(document.values())


def init(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `dps provider init` in a pipe, as configuration management does."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
    dps = str(Path(sys.executable).with_name("dps"))
    return subprocess.run(
        [dps, "provider", "init", *arguments], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip


def test_the_file_becomes_blocks(tmp_path: Path) -> None:
    document = Document.read(written(tmp_path).path)
    document.set("login.account_pattern", "ds-{digits}")
    document.set("supervisor.accepted_gaps", '["private_tmp"]')
    _, _, login, provider = blocks_of(document.values())
    assert isinstance(login, SlurmLogin) and isinstance(provider, Provider)
    assert (login.port, login.partition, login.account_pattern) == (2222, "gpu", "ds-{digits}")
    assert (provider.cpu_wei_per_minute, provider.mem_wei_per_mb_minute) == ("950000000000000000", "80000000000000")
    assert (provider.trust_customers, provider.metrics_port, provider.labels) == (True, 9464, {"region": "ch"})
    assert provider.accepted_gaps == ["private_tmp"]


def test_a_change_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = written(tmp_path).path
    text = path.read_text().replace('cpu = "0.95"', 'cpu = "0.95"  # agreed in March')
    path.write_text(text)
    document = Document.read(path)
    document.set("prices.gpu", "9")
    for question in QUESTIONS:
        if question.key in ANSWERS:
            document.set(question.key, ANSWERS[question.key] if question.key != "prices.gpu" else "9")
    assert document.text == text.replace('gpu = "8.5"', 'gpu = "9"')


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    assert written(tmp_path).path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster = ", "is not a TOML file"),
        ("[logn]\nhost = 'x'", "there is no section 'logn'"),
        ("[login]\nhots = 'x'", "login has no setting 'hots'"),
        ("[supervisor]\ncluster = 'x'", "supervisor has no setting 'cluster'"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        Document.read(tmp_path / "file")


@pytest.mark.parametrize(("key", "text"), [("login.port", "x"), ("supervisor.trust_customers", "2"), ("a.b", "1")])
def test_a_value_of_the_wrong_kind_is_refused(tmp_path: Path, key: str, text: str) -> None:
    with pytest.raises(InputError):
        Document.read(tmp_path / "none").set(key, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cluster", "Gamma!"),
        ("login.account_pattern", "ds"),
        ("login.become", "root"),
        ("prices.cpu", "1e3"),
        ("prices.gpu", "-1"),
        ("login.port", "0"),
        ("login.grid_root", "x"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_refused_at_once(key: str, text: str) -> None:
    with pytest.raises((InputError, ConfigurationError)):
        await check(key, ANSWERS | {key: text})


def test_files_beside_the_key_and_the_name_of_the_settings_file_are_proposed(tmp_path: Path) -> None:
    settings = tmp_path / "gamma.toml"
    usual = {one.key: one.proposal for one in QUESTIONS}
    assert usual["login.key_file"](ANSWERS, settings) == "~/.ssh/id_ed25519"
    (tmp_path / "provider.key").touch()
    assert usual["login.key_file"](ANSWERS, settings) == str(tmp_path / "id_ed25519")
    assert usual["supervisor.state"](ANSWERS, settings) == str(tmp_path / "state")
    assert usual["cluster"]({}, settings) == "gamma"
    assert usual["cluster"]({}, tmp_path / "provider.toml") == ""


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ({}, {"login.job_account"}),
        ({"login.account_table": "0x12=alice"}, {"login.become", "login.own_account"}),
        ({"login.account_pattern": "ds-{digits}"}, {"login.become", "login.own_account"}),
        (
            {"login.account_pattern": "ds-{digits}", "login.become": "sudo"},
            {"login.become", "login.own_account", "login.submit_wrapper"},
        ),
    ],
)
def test_the_accounts_of_customers_decide_what_is_asked(answers: dict[str, str], asked: set[str]) -> None:
    of_accounts = {"login.job_account", "login.become", "login.own_account", "login.submit_wrapper"}
    assert {one.key for one in QUESTIONS if one.applies(ANSWERS | answers)} & of_accounts == asked


def test_labels_are_one_answer_and_a_section_of_the_file(tmp_path: Path) -> None:
    document = written(tmp_path)
    document.path.write_text(document.path.read_text().replace('region = "ch"', 'region = "ch"  # Bern'))
    document = Document.read(document.path)
    assert document.answers()["labels"] == "region=ch"
    document.set("labels", "region=ch, network = ethernet")
    assert document.values()["labels"] == {"region": "ch", "network": "ethernet"}
    assert "# Bern" in document.text
    document.set("labels", "")
    assert document.values()["labels"] == {}
    with pytest.raises(InputError, match="NAME=VALUE"):
        document.set("labels", "region")


def test_the_deployments_are_those_of_the_project() -> None:
    found = {one["flow_name"]: one for one in deployments_of("gamma")}
    assert found["run_job"]["work_pool"]["name"] == "provider-gamma"
    assert found["run_job"]["parameters"] == {"cluster": "gamma"}


def test_in_a_pipe_what_is_missing_is_named(tmp_path: Path) -> None:
    done = init("--set", "cluster=gamma", cwd=tmp_path)
    assert done.returncode == 2
    assert "login.host: Login node of the cluster" in done.stderr
    assert "Give each by --set KEY=VALUE" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "provider.toml").exists()


def test_in_a_pipe_all_faults_are_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("11" * 32)
    (tmp_path / "key").chmod(0o644)
    settings = ANSWERS | {"prices.cpu": "free", "grid.key_file": "key", "prefect.api_url": "http://127.0.0.1:9/api"}
    settings |= {"login.host": "127.0.0.1", "login.port": "9"}
    options = [f"--set={key}={text}" for key, text in settings.items()]
    done = init("provider.toml", *options, "--yes", cwd=tmp_path)
    assert done.returncode == 2
    for key in (
        "prices.cpu: 'free' is not an amount",
        "grid.key_file: ",
        "grid.address_book: There is no address book",
    ):
        assert key in done.stderr
    assert not (tmp_path / "provider.toml").exists()
