"""known_hosts files as OpenSSH reads them: what it accepts, refuses and skips."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from pathlib import Path

import paramiko
import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.known_hosts import KnownHosts
from deepgrid.slurm.ssh.login_settings import Endpoint
from deepgrid.slurm.ssh.ssh_transport import check_host_key

KINDS = ("ed25519", "ecdsa", "rsa")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[paramiko.PKey]:
    """Two Ed25519 keys, an ECDSA and an RSA key."""
    folder = tmp_path_factory.mktemp("keys")
    found = []
    for number, kind in enumerate(("ed25519", *KINDS)):
        file = folder / str(number)
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(file)], check=True)
        found.append(paramiko.PKey.from_path(file))
    return found


def line(names: str, key: paramiko.PKey, *, marker: str = "", comment: str = "") -> str:
    return f"{marker} {names} {key.get_name()} {key.get_base64()} {comment}".strip()


def openssh_finds(file: Path, name: str) -> bool:
    """Return whether OpenSSH finds a line for this name."""
    done = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.situation(
    "ssh",
    "known_hosts lines with wildcards, negated patterns and ports",
    "they match as for OpenSSH",
)
@pytest.mark.parametrize(
    ("names", "host", "port", "found"),
    [
        ("login", "login", 22, True),
        ("LOGIN.Example", "login.example", 22, True),
        ("login", "Login", 22, True),
        ("other,login,192.0.2.7", "login", 22, True),
        ("login*.example,192.0.2.?", "login17.example", 22, True),
        ("login?.example", "login17.example", 22, False),
        ("*.example,!bad.example", "bad.example", 22, False),
        ("*.example,!bad.example", "good.example", 22, True),
        ("[login]:2222", "login", 2222, True),
        ("[login]:2222", "login", 22, False),
        ("[*.example]:2222", "a.example", 2222, True),
        ("login", "log[i]n", 22, False),
        ("lo.in", "login", 22, False),
    ],
)
def test_names_match_as_for_openssh(
    keys: list[paramiko.PKey], tmp_path: Path, names: str, host: str, port: int, found: bool
) -> None:
    text = line(names, keys[0])
    assert KnownHosts.parse(text).of(host, port).trusts(keys[0]) is found
    file = tmp_path / "known"
    file.write_text(f"{text}\n")
    assert openssh_finds(file, host if port == 22 else f"[{host}]:{port}") is found


def test_a_line_without_a_port_counts_where_no_line_has_the_port(keys: list[paramiko.PKey]) -> None:
    known = KnownHosts.parse(line("login", keys[0]))
    assert known.of("login", 2222).trusts(keys[0])
    both = KnownHosts.parse(f"{line('login', keys[0])}\n{line('[login]:2222', keys[1])}")
    assert [both.of("login", 2222).trusts(key) for key in keys[:2]] == [False, True]


@pytest.mark.situation(
    "ssh",
    "known_hosts lines with hashed names",
    "they match",
)
def test_hashed_names_match(keys: list[paramiko.PKey], tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(f"{line('login', keys[0])}\n{line('[login]:2222', keys[1])}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "login" not in file.read_text()
    known = KnownHosts.load(file)
    assert known.of("Login", 22).trusts(keys[0]) and known.of("login", 2222).trusts(keys[1])
    assert not known.of("other", 22).lines


@pytest.mark.situation(
    "ssh",
    "several keys of one type for a host in known_hosts",
    "any of them is accepted",
)
def test_each_of_several_keys_of_one_type_is_trusted(keys: list[paramiko.PKey]) -> None:
    """The key was rotated, or the name stands for a pool of login nodes."""
    hosts = KnownHosts.parse("\n".join(line("pool", key) for key in keys)).of("pool", 22)
    assert all(hosts.trusts(key) for key in keys)
    assert hosts.algorithms() == ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]


@pytest.mark.situation(
    "ssh",
    "damaged lines, comments and unknown keys in known_hosts",
    "they are skipped",
)
def test_lines_that_openssh_skips_are_no_error(keys: list[paramiko.PKey]) -> None:
    good = keys[0].get_base64()
    bad = [
        "", "   ", "# a comment", "  # another", "login", "login ssh-ed25519", "login ssh-ed25519 !!!",
        "login ssh-ed25519 AAAA",
        f"login ssh-ed25519 {good[:-7]}", f"login ssh-rsa {good}", f"login ssh-new {good}",
        f"@other login ssh-ed25519 {good}",
        "login 1024 35 1234567890", f"login sk-ssh-ed25519@openssh.com {good}", "@cert-authority", "@revoked login",
        f"|1|broken ssh-ed25519 {good}", f"|1|AAAA|BBBB ssh-ed25519 {good}", f"|2|x|y ssh-ed25519 {good}", "\0\ufffd",
        f"login ssh-ed25519 {b64encode(b'x' * 3000).decode()}",
    ]  # fmt: skip
    known = KnownHosts.parse("\r\n".join([*bad, f"\t login \t ssh-ed25519   {good} a comment with words"]))
    assert [one.names for one in known.lines if not one.names.startswith("|")] == ["login"]
    assert known.of("login", 22).trusts(keys[0])


@pytest.mark.situation(
    "ssh",
    "`@cert-authority` and `@revoked` lines in known_hosts",
    "they are no keys of the host; revoked keys are refused",
)
def test_markers_are_no_keys_of_the_host(keys: list[paramiko.PKey]) -> None:
    marked = line("*", keys[0], marker="@cert-authority"), line("*", keys[2], marker="@revoked")
    text = "\n".join((*marked, line("login", keys[1]), line("login", keys[2])))
    hosts = KnownHosts.parse(text).of("login", 22)
    assert [hosts.trusts(key) for key in keys[:3]] == [False, True, False]
    assert hosts.has_authority and hosts.revokes(keys[2])


@pytest.mark.parametrize(
    ("marker", "words"),
    [("@revoked", "revokes"), ("@cert-authority", "names an authority"), ("", "")],
)
def test_the_error_says_what_the_file_has(keys: list[paramiko.PKey], tmp_path: Path, marker: str, words: str) -> None:
    file = tmp_path / "known"
    file.write_text(line("login", keys[0], marker=marker))
    node = Endpoint("login", 22, "grid", tmp_path / "key", file)
    if not marker:
        check_host_key(node, keys[0])
    with pytest.raises(ConfigurationError) as found:
        check_host_key(node, keys[0] if marker else keys[1])
    assert words in found.value.message and found.value.next_step


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigurationError, match="does not exist|cannot be read"):
            KnownHosts.load(file)
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    assert not KnownHosts.load(tmp_path / "binary").lines
