"""The services fetch modules for strangers only from listed hosts at public addresses, without credentials."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.cli.verbs.services import hosts_of
from deepgrid.compat.compat_context import CompatSettings
from deepgrid.compat.unsigned_definitions import resolve_uses, store_anonymous
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.safe_http import is_public
from deepgrid.workflow import Definition, EnvVar, Step, canonical, from_canonical
from deepgrid.workflow.models import StepUse
from tests.compat.git_server import HOST, MODULE, GitServer, git_server
from tests.services.support import Grid, Start, a_job

SOURCE = "192.0.2.1"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    with git_server(tmp_path) as found:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(found.certificate))
        names_lead_to(monkeypatch, "127.0.0.1")
        yield found


def names_lead_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let the names of `.example` have these addresses, for this process only, not for git."""
    real = socket.getaddrinfo

    def answer(host: str, port: int, *words: object, **named: object) -> object:
        if not str(host).endswith(".example"):
            return real(host, port, *words, **named)  # type: ignore[arg-type]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def using(source: str, **changes: object) -> Definition:
    step = Step(use=StepUse(source=source, args=(EnvVar(key="WHO", value="you"),)))
    return a_job().model_copy(update={"steps": (step,), **changes})


async def grid_with(start: Start, *hosts: str, private: bool = True) -> Grid:
    return await start(compat=CompatSettings(module_hosts=hosts, private_module_hosts=private))


async def fault(grid: Grid, source: str) -> str:
    with pytest.raises(InputError) as caught:
        await resolve_uses(grid.compat, SOURCE, canonical(using(source)))
    return caught.value.message


async def test_a_module_of_a_listed_host_becomes_part_of_the_definition(start: Start, server: GitServer) -> None:
    commit = server.publish()
    grid = await grid_with(start, server.where.upper())
    job = from_canonical(await resolve_uses(grid.compat, SOURCE, canonical(using(f"{server.source}@{commit}"))))
    module = job.steps[0].module
    assert module is not None
    assert (module.commit, module.steps[0].run is not None) == (commit, True)
    definition_hash = await store_anonymous(grid.compat, SOURCE, canonical(using(f"{server.source}@{commit}")))
    grid.chain.put(1, definition_hash)
    assert await grid.provider.fetch_definition(1, definition_hash) == job


async def test_no_host_is_listed_by_default(grid: Grid, server: GitServer) -> None:
    server.publish()
    assert await fault(grid, server.source) == (
        "steps[0].use.source: must be at a host from which this grid fetches modules by https (none); submit with"
        " `dps`, which fetches modules itself"
    )
    assert server.asked == []


OTHER_HOSTS = (
    "other.example/owner/tools", "git.example/owner/tools", "git.example:1/owner/tools", "ssh://git@{where}/owner/tools",
    "xgit.example:{port}/owner/tools", "git.example.evil:{port}/owner/tools", "127.0.0.1:{port}/owner/tools",
)  # fmt: skip


async def test_other_hosts_ports_and_transports_are_refused(start: Start, server: GitServer) -> None:
    grid = await grid_with(start, server.where)
    for source in OTHER_HOSTS:
        found = await fault(grid, source.format(where=server.where, port=server.port))
        assert "must be at a host" in found, source
    assert server.asked == []


async def test_nothing_on_the_machine_of_the_services_is_read(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("m", "."):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "module.yaml").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    grid = await grid_with(start, HOST)
    for source in ("./m", "../m", "/etc", "file:///etc", "."):
        found = await fault(grid, source)
        assert "must name a repository" in found or "must be at a host" in found, source


async def test_a_module_may_not_lead_to_another_host(start: Start, server: GitServer) -> None:
    server.publish(MODULE.replace("run: {command: 'echo \"Hello $WHO\"'}", "use: {source: other.example/owner/x}"))
    grid = await grid_with(start, server.where)
    found = await fault(grid, server.source)
    assert "must be at a host" in found
    assert found.endswith("(used by steps[0].use)")


async def test_a_redirect_is_not_followed(start: Start, server: GitServer) -> None:
    server.publish()
    grid = await grid_with(start, server.where)
    server.moved_to = f"https://{server.where}/elsewhere"
    assert "git: " in await fault(grid, server.source)
    assert not [path for path in server.asked if "elsewhere" in path]


async def test_git_gets_no_credentials_and_no_settings_of_the_account(
    start: Start, server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish()
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(f"machine {HOST} login me password s3cret\n")
    extra = f'[http]\n\textraHeader = "Authorization: Basic czNjcmV0"\n[url "https://other.example/"]\n\tinsteadOf = https://{HOST}\n'
    (home / ".gitconfig").write_text(extra)
    monkeypatch.setenv("HOME", str(home))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    grid = await grid_with(start, server.where)
    job = from_canonical(await resolve_uses(grid.compat, SOURCE, canonical(using(server.source))))
    assert job.steps[0].module is not None
    assert server.asked
    assert server.authorised == []


async def test_a_host_at_a_private_address_is_refused(
    start: Start, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish()
    grid = await grid_with(start, server.where, private=False)
    for address in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"):
        names_lead_to(monkeypatch, "8.8.8.8", address)
        found = await fault(grid, server.source)
        assert found == f"steps[0].use.source: the host {HOST} is at a private address", address
    assert server.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700::1111", True), ("100.64.0.1", False), ("0.0.0.0", False), ("192.168.0.1", False),
     ("224.0.0.1", False), ("255.255.255.255", False), ("::ffff:127.0.0.1", False), ("::ffff:8.8.8.8", True),
     ("2002:7f00:1::", False), ("64:ff9b::7f00:1", False), ("fe80::1", False), ("ff02::1", False), ("::", False)],
)  # fmt: skip
def test_only_addresses_of_the_public_internet_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


async def test_a_name_without_an_address_may_be_tried_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "unknown")

    grid = await grid_with(start, HOST)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(InputError, match="has no address at the moment") as caught:
        await resolve_uses(grid.compat, SOURCE, canonical(using(f"{HOST}/owner/tools")))
    assert caught.value.transient


@pytest.mark.parametrize("entry", ["", "https://git.example", "git.example/owner", "*", "a b", "git.example:x", "-x"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a host"):
        CompatSettings(module_hosts=(entry,))


def test_hosts_are_given_repeatedly_or_with_commas() -> None:
    assert hosts_of(["a.example,b.example:8443", "c.example"]) == ("a.example", "b.example:8443", "c.example")
    assert hosts_of(None) == ()
