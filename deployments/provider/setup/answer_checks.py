"""Tries each answer of `dps provider init` at once: files, chain, Prefect, login node and host key, Slurm, prices."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import paramiko

from deepgrid.billing.credits import parse_credits
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.files.private_files import unwritable_part
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.checkup import ask
from deepgrid.slurm.ssh.known_hosts import KnownHosts, host_name
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import (
    LAST_PORT,
    Become,
    CustomerAccounts,
    Endpoint,
    LoginSettings,
    parse_jump,
    split_hosts,
)
from deepgrid.slurm.ssh.ssh_transport import fetch_host_key, read_private_key
from deployments.provider.setup.provider_questions import Answers

EXAMPLE = "0x1a642f0e3c3af545e7acbd38b07251b3990914f1"
TIMEOUT_S = 10.0
OLDEST_SLURM = (22, 5)


async def check(key: str, answers: Answers) -> str:
    """Try one answer, with those before it. Returns what was found, in a sentence, or nothing.

    Raises GridError when the answer cannot be used.
    """
    is_well_formed, rule = FORMATS.get(key, (None, ""))
    if is_well_formed is not None and not is_well_formed(answers[key]):
        raise InputError(rule)
    if key.startswith("prices."):
        parse_credits(answers[key])
    tried = CHECKS.get(key)
    return (tried and await tried(answers)) or ""


def path_of(text: str) -> Path:
    """Return an absolute path, even for one that begins with ~."""
    return Path(text).expanduser().absolute()


def login_settings(answers: Answers) -> LoginSettings:
    """Return how to reach the login node, by the answers so far. Raises ConfigurationError."""
    (host, *others), port, user = split_hosts(answers["login.host"]), int(answers["login.port"]), answers["login.user"]
    key_file, known = path_of(answers["login.key_file"]), path_of(answers["login.known_hosts_file"])
    jump_files = (answers.get(f"login.jump_{name}_file") for name in ("key", "known_hosts"))
    jump_key, jump_known = (path_of(file) if file else None for file in jump_files)
    jump = parse_jump(answers.get("login.jump_host", ""), user, jump_key or key_file, jump_known or known)
    grid_root, partition = answers.get("login.grid_root", "/"), answers.get("login.partition", "main")
    shared, own = (answers.get(f"login.{name}_account") or None for name in ("job", "own"))
    customers = CustomerAccounts(pattern=answers.get("login.account_pattern", ""))
    return LoginSettings(
        host,
        port,
        user,
        key_file,
        known,
        grid_root,
        partition,
        job_account=shared,
        accounts=customers,
        own_account=own,
        other_hosts=tuple(others),
        jump=jump,
    )


def read_login(answers: Answers) -> str:
    """Return the login of the Prefect server, from its file; empty without one. Raises ConfigurationError."""
    text = answers.get("prefect.login_file", "")
    if not text:
        return ""
    file = path_of(text)
    try:
        if file.stat().st_mode & 0o077:
            raise ConfigurationError(f"Others can read {file}.", next_step=f"Run chmod 600 {file}.")
        return file.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None


@asynccontextmanager
async def open_login(settings: LoginSettings) -> AsyncIterator[Login]:
    """Yield the login node, closed at the end of the block."""
    login = Login(settings)
    try:
        yield login
    finally:
        await login.close()


async def _prefect(answers: Answers) -> str:
    url, login = answers["prefect.api_url"].rstrip("/"), read_login(answers)
    user, _, password = login.partition(":")
    auth = httpx.BasicAuth(user, password) if login else None
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, auth=auth) as client:
            answer = await client.post(f"{url}/flows/count", json={})
    except (httpx.HTTPError, httpx.InvalidURL):
        raise ConfigurationError(f"The Prefect server at {url} does not answer.", next_step="Start it.") from None
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise ConfigurationError("The Prefect server refuses this login.", next_step="Check the file of its login.")
    if not answer.is_success:
        raise ConfigurationError(f"The Prefect server at {url} answers with HTTP status {answer.status_code}.")
    return "Prefect answers." if login else "Prefect answers without a login: any client can run commands on it."


async def _book(answers: Answers) -> str:
    book = AddressBook.load(path_of(answers["grid.address_book"]))
    async with await Chain.connect(book) as chain:
        return f"Chain {book.chain_id} is at block {(await chain.head()).number}."


async def _wallet(answers: Answers) -> str:
    return f"The provider's address is {Wallet.load(path_of(answers['grid.key_file'])).address}."


async def _jump(answers: Answers) -> None:
    parse_jump(answers.get("login.jump_host", ""), answers["login.user"], Path(), Path())  # refuses what is no host


async def _ssh_key(answers: Answers) -> None:
    read_private_key(path_of(answers["login.key_file"]))


async def _ssh(answers: Answers) -> str:
    async with open_login(login_settings(answers)) as login:
        done = await login.run(["id", "-un"])
        node = login.node
    return f"{node.host} answers as {done.stdout.decode(errors='replace').strip()}."


async def _slurm(answers: Answers) -> str:
    settings = login_settings(answers)
    async with open_login(settings) as login:
        cluster = Cluster(login, settings)
        await cluster.health()
        nodes = (await cluster.hardware()).nodes
        version = (await ask(login, settings)).values.get("SLURM_VERSION", "")
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers and numbers < OLDEST_SLURM:
        raise ConfigurationError(f"Slurm {version} is too old.", next_step="Update it to 22.05 or newer.")
    return f"Slurm {version}, partition {settings.partition} with {nodes} nodes."


async def _folder(answers: Answers) -> None:
    login_settings(answers)  # refuses paths that Slurm would change


async def _pattern(answers: Answers) -> str:
    accounts = login_settings(answers).accounts  # refuses what is no pattern
    return f"The customer {EXAMPLE} would have the account {accounts.of(EXAMPLE)}." if accounts.pattern else ""


async def _become(answers: Answers) -> None:
    if answers["login.become"] not in (one.value for one in Become):
        raise InputError(f"{answers['login.become'][:40]!r} is neither uid nor sudo.")


async def _job_account(answers: Answers) -> str:
    settings = login_settings(answers)  # refuses root and numbers
    trusting = f"All jobs run as {settings.user}: take only jobs of people whom you trust."
    return await _require(settings, settings.job_account, trusting)


async def _own_account(answers: Answers) -> str:
    settings = login_settings(answers)
    return await _require(settings, settings.own_account, f"Benchmarks run as {settings.user}.")


async def _require(settings: LoginSettings, account: str | None, without: str) -> str:
    """Return the sentence `without` if no account is named.

    Raises ConfigurationError if the login node does not know it.
    """
    if account is None:
        return without
    async with open_login(settings) as login:
        done = await login.run(["id", "-u", "--", account])
    if done.exit_status:
        raise ConfigurationError(f"The login node has no account {account}.", next_step="Create it there.")
    return ""


async def _state(answers: Answers) -> None:
    folder = path_of(answers["supervisor.state"])
    if obstacle := unwritable_part(folder):
        raise ConfigurationError(f"{folder} cannot be made: {obstacle} is not a folder that this account can write.")


def strangers(settings: LoginSettings) -> list[Endpoint]:
    """Return the hosts whose keys are in no known_hosts file: the jump host first, then login nodes."""
    ways = [settings.jump] if settings.jump else []
    return [one for one in (*ways, *settings.endpoints()) if not _is_known(one)]


async def show_host_key(settings: LoginSettings, node: Endpoint) -> paramiko.PKey:
    """Return the key that this host shows now. Nothing says yet that it is the right one.

    Raises SlurmUnreachable, and ConfigurationError when the jump host before it cannot be used.
    """
    way = settings if node != settings.jump else replace(settings, jump=None)
    return await asyncio.to_thread(fetch_host_key, way, node)


def trust_host_key(node: Endpoint, key: paramiko.PKey) -> None:
    """Add the key to the known_hosts file."""
    node.known_hosts_file.parent.mkdir(parents=True, exist_ok=True)
    with node.known_hosts_file.open("a") as file:
        file.write(f"{host_name(node.host, node.port)} {key.get_name()} {key.get_base64()}\n")


def _is_known(node: Endpoint) -> bool:
    return node.known_hosts_file.exists() and bool(
        KnownHosts.load(node.known_hosts_file).of(node.host, node.port).lines
    )


FORMATS: dict[str, tuple[Callable[[str], object], str]] = {
    "cluster": (
        re.compile(r"[a-z0-9][a-z0-9-]{0,49}").fullmatch,  # a block's name
        "A cluster's name has small letters, digits and dashes only.",
    ),
    "prefect.api_url": (re.compile("https?://.*").match, "The URL begins with http:// or https://."),
    "login.port": (lambda text: 0 < int(text) <= LAST_PORT, "A port is a number from 1 to 65535."),
    "supervisor.metrics_port": (lambda text: int(text) <= LAST_PORT, "A port is a number up to 65535; 0 is none."),
}
CHECKS: dict[str, Callable[[Answers], Awaitable[str | None]]] = {
    "prefect.login_file": _prefect,
    "grid.address_book": _book,
    "grid.key_file": _wallet,
    "login.jump_host": _jump,
    "login.key_file": _ssh_key,
    "login.known_hosts_file": _ssh,
    "login.partition": _slurm,
    "login.grid_root": _folder,
    "login.account_pattern": _pattern,
    "login.become": _become,
    "login.own_account": _own_account,
    "login.job_account": _job_account,
    "supervisor.state": _state,
}
