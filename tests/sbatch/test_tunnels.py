"""Tunnels of steps: the real ssh client carries real requests from a bore server to a step.

The server is `bore_server.py`, in the sandbox's network outside. On a machine without a usable /dev/net/tun each test
checks that the step reports this and fails with 69.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.workflow import Definition, parse
from tests.sbatch.network_support import sandbox as sandbox
from tests.sbatch.sandbox import NO_TUN, UNAVAILABLE, Sandbox, has_tun
from tests.sbatch.support import lint

SERVER = Path(__file__).with_name("bore_server.py")
SECRET = "a'$(x) b"
SERVE = "printf hello >page; exec python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1"
ADDRESSES = [
    "tunnel: Generated HTTP URL: http://4fb71d0c.bore.test",
    "tunnel: Generated HTTPS URL: https://4fb71d0c.bore.test",
    "tunnel: Direct TCP: tcp://bore.test:PORT",
    "tunnel: tcp://198.51.100.1:PORT leads to port 8000 of this step",
]


@pytest.fixture
def folder(sandbox: Sandbox) -> Iterator[Path]:
    """The folder of the bore server."""
    folder = sandbox.root / "bore"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def job(bore: str, command: str, more: str = "", stack: str = "slirp4netns") -> Definition:
    return parse(
        f"""resources: {{tasks: 4, cpusPerTask: 1, memPerCpu: 1, gpus: 0}}
steps:
- run:
    network: {stack}
    customNetworkInterfaces: [{{bore: {{{bore}, targetPort: 8000}}}}]
    {more}
    command: |
      {command}
""",
        "job.yaml",
    ).model


def serving(folder: Path, port: int, password: str = "") -> str:
    """Start the bore server and wait for it."""
    (folder / "password").write_text(password)
    return f"{sys.executable} {SERVER} {port} {folder} &\nuntil [[ -e {folder}/listening ]]; do sleep 0.05; done\n"


def port_of(folder: Path, nth: int = 1) -> str:
    """Set PORT to the public port of the nth tunnel."""
    port = f"$(sed -n 's/^port //p' {folder}/seen 2>/dev/null | sed -n {nth}p)"
    return f"until PORT={port}; [[ $PORT ]]; do sleep 0.05; done\n"


def fetch(folder: Path, answer: str) -> str:
    """Fetch a page of the step through the public port, as its users do."""
    return (
        f"for _ in {{1..300}}; do curl -fsS --max-time 5 -o {folder}/{answer} http://198.51.100.1:$PORT/page && break\n"
        "sleep 0.1; done 2>/dev/null\n"
    )


END = "kill -TERM $SCRIPT\n"


def until_told(sandbox: Sandbox, what: str, times: int = 1) -> str:
    """Wait until the log has this many lines with this text."""
    return f"until (($(grep -cF {shlex.quote(what)} {sandbox.root}/output) == {times})); do sleep 0.05; done\n"


def until_addresses(sandbox: Sandbox, times: int = 1) -> str:
    return until_told(sandbox, "Direct TCP:", times) + until_told(sandbox, "of this step", times)


def through(
    sandbox: Sandbox, made: Definition, folder: Path, meanwhile: str, *, port: int = 2200, password: str = ""
) -> list[str]:
    """Run the step until `meanwhile` has ended it. Returns its output with each port as PORT; empty without a tun."""
    lint(made)
    if not has_tun():
        outcome = sandbox.run(made, hide_tun=True)
        assert (outcome.status, outcome.output.splitlines()[-1]) == (UNAVAILABLE, NO_TUN)
        return []
    outcome = sandbox.run(made, prepare=serving(folder, port, password), meanwhile=meanwhile + END)
    assert outcome.status == 143, outcome.output
    return re.sub(r":(?!2200\b|4022\b)[0-9]{4,5}\b", ":PORT", outcome.output).splitlines()


@pytest.mark.parametrize(
    ("bore", "port", "stack", "more"),
    [
        ("boreAddress: '198.51.100.1:2200'", 2200, "slirp4netns", ""),
        ("boreAddress: '198.51.100.1:4022'", 4022, "pasta", "mapUid: 0"),
        ("address: 198.51.100.1, port: 2200", 2200, "slirp4netns", "mapUid: 4242"),
    ],
)
def test_a_request_reaches_the_step_and_its_users_read_the_addresses_in_the_log(
    sandbox: Sandbox, folder: Path, bore: str, port: int, stack: str, more: str
) -> None:
    """The port is arbitrary, and the address has both forms. The user may have no name."""
    meanwhile = port_of(folder) + fetch(folder, "answer") + until_addresses(sandbox)
    output = through(sandbox, job(bore, SERVE, more, stack), folder, meanwhile, port=port)
    if output:
        assert (folder / "answer").read_text() == "hello"
        told = f"tunnel: connecting to the bore server 198.51.100.1:{port}; its host key is not checked"
        assert [output.count(line) for line in [told, *ADDRESSES]] == [1] * 5
        assert "forward 0.0.0.0:0" in (folder / "seen").read_text()


def test_a_tunnel_sends_requests_by_which_the_server_knows_that_it_lives(sandbox: Sandbox, folder: Path) -> None:
    """bore closes connections that send no global request for two minutes. Its refusals are not shown."""
    meanwhile = f"until grep -q '^request streamlocal' {folder}/seen 2>/dev/null; do sleep 0.05; done\n"
    output = through(sandbox, job("boreAddress: '198.51.100.1:2200'", SERVE), folder, meanwhile)
    assert [line for line in output if "keepalive" in line or "mux" in line] == []


def test_a_tunnel_is_opened_again_when_its_server_comes_back(sandbox: Sandbox, folder: Path) -> None:
    meanwhile = (
        port_of(folder)
        + f"touch {folder}/drop; until grep -q dropped {folder}/seen; do sleep 0.05; done; rm {folder}/drop\n"
        + port_of(folder, 2)
        + fetch(folder, "new")
        + until_addresses(sandbox, 2)
    )
    output = through(sandbox, job("boreAddress: '198.51.100.1:2200'", SERVE), folder, meanwhile)
    if output:
        assert (folder / "new").read_text() == "hello"
        assert "tunnel: the bore server 198.51.100.1:2200 is not connected; trying again in 1 s" in output
        assert all(output.count(line) == 2 for line in ADDRESSES), output


def test_the_secret_is_the_password_and_nobody_sees_it(sandbox: Sandbox, folder: Path) -> None:
    """While the tunnel is up, no argument of a process, no variable of the step and no line of the log contains it."""
    look = f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' >{folder}/looked\n"
    secret = SECRET.replace("'", "''")
    made = job(f"boreAddress: '198.51.100.1:2200', secret: '{secret}'", f"env >{folder}/env; {SERVE}")
    meanwhile = port_of(folder) + fetch(folder, "answer") + look
    output = through(sandbox, made, folder, meanwhile, password=SECRET)
    if output:
        assert (folder / "answer").read_text() == "hello"
        assert (folder / "seen").read_text().count("password right") == 1
        looked = (folder / "looked").read_text()
        assert "tunnel_once" in looked
        assert not [text for text in (looked, (folder / "env").read_text(), *output) if SECRET in text]


def test_a_step_runs_although_its_bore_server_is_not_there(sandbox: Sandbox, folder: Path) -> None:
    wait = f"until grep -q 'again in 2 s' {sandbox.root}/output; do sleep 0.1; done"
    made = job("boreAddress: '198.51.100.1:2201'", wait)
    if has_tun():
        outcome = sandbox.run(made)
        assert outcome.status == 0
        assert "tunnel: ssh: connect to host 198.51.100.1 port 2201: Connection refused" in outcome.output
