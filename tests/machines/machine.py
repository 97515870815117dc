"""Debian machines with a running systemd: containers of systemd-nspawn, each with its own network namespace. They share
one root folder, which Debian's packages made, and each writes to its own layer. The checkout is at its usual path,
read-only.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
BASE = CHECKOUT / ".grid/machines/base"
TOOLS = ("debootstrap", "systemd-nspawn", "ip", "nsenter")
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "ca-certificates", "iproute2", "procps", "openssh-client", "openssl",
    "curl", "git", "postgresql", "nginx", "python3", "python3-venv", "shellcheck",
)  # fmt: skip
BOOT_S, COMMAND_S, STOP_S = 180, 600, 60


def missing_tools() -> list[str]:
    """Return the missing programs that are needed to make a machine."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def make_base() -> Path:
    """Return the root folder of all machines. The first call makes it: a minute, and 600 MB."""
    BASE.parent.mkdir(parents=True, exist_ok=True)
    with (BASE.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not BASE.exists():
            draft = BASE.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", str(draft)]
            with (BASE.parent / "log").open("wb") as log:
                subprocess.run(command, check=True, stdout=log, stderr=log)
            draft.rename(BASE)
    return BASE


@dataclass(frozen=True)
class Network:
    """A bridge of this test run. The host has the first address, machine N the address N + 1."""

    name: str
    prefix: str

    @property
    def host(self) -> str:
        return f"{self.prefix}.1"

    def address(self, number: int) -> str:
        return f"{self.prefix}.{number + 1}"


@contextmanager
def network() -> Iterator[Network]:
    """Yield a bridge without a way out of this machine."""
    one = Network(f"dgb{os.getpid()}"[:15], f"10.{os.getpid() // 250 % 250 + 1}.{os.getpid() % 250 + 1}")
    _ip("link", "add", one.name, "type", "bridge")
    try:
        _ip("address", "add", f"{one.host}/24", "dev", one.name)
        _ip("link", "set", one.name, "up")
        yield one
    finally:
        _ip("link", "delete", one.name)


class Machine:
    """A running machine. `root` is its file system, seen from outside."""

    def __init__(self, name: str, address: str, root: Path, leader: int) -> None:
        self.name, self.address, self.root = name, address, root
        self._leader = leader

    def run(self, script: str, stdin: str = "", *, check: bool = True) -> str:
        """Run a script of root in /root/grid. Returns what it prints, and fails the test if it fails."""
        done = subprocess.run(
            self.shell(script), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"on {self.name}: {script}\n{done.stdout}\n{self.complaints()}"
        return done.stdout

    def shell(self, script: str) -> list[str]:
        """Return the command that runs a script there."""
        inside = [
            "nsenter",
            f"--target={self._leader}",
            "--all",
            "--root",
            "--wd",
            "env",
            "-i",
            "HOME=/root",
            "TERM=dumb",
        ]
        path = "PATH=/opt/deepgrid/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return [*inside, "LANG=C.UTF-8", path, "bash", "-euc", f"mkdir -p ~/grid; cd ~/grid\n{script}"]

    def file(self, path: str) -> Path:
        """Return the path of a machine's file, seen from outside."""
        return self.root / path.lstrip("/")

    def power_off(self) -> None:
        """Shut it down, and wait until it is gone."""
        self.run("systemctl poweroff", check=False)
        wait_until(lambda: not Path(f"/proc/{self._leader}").exists(), within_s=STOP_S)

    def complaints(self) -> str:
        """Return the last lines of its journal."""
        return subprocess.run(
            self.shell("journalctl --no-pager --lines=60 --output=cat"), capture_output=True, text=True, check=False
        ).stdout


@contextmanager
def machine(name: str, number: int, here: Network, hosts: dict[str, str], layers: Path) -> Iterator[Machine]:
    """Boot a machine, and power it off at the end. `hosts` are addresses by name for its /etc/hosts."""
    space, cable, root = f"{here.name}-{name}", f"dg{os.getpid()}-{number}", layers / name / "root"
    with ExitStack() as undo:
        _layered(root, layers / name, undo)
        (root / "etc/hostname").write_text(f"{name}\n")
        known = {"127.0.0.1": "localhost", "127.0.1.1": name} | {address: known for known, address in hosts.items()}
        (root / "etc/hosts").write_text("".join(f"{address} {known}\n" for address, known in known.items()))
        _ip("netns", "add", space)
        undo.callback(_ip, "netns", "delete", space)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", cable, "master", here.name, "up")
        _ip("-n", space, "address", "add", f"{here.address(number)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "link", "set", "eth0", "up")
        groups = _control_groups(space, undo)
        with (layers / f"{name}.log").open("wb") as log:
            container = subprocess.Popen(_boot(root, space, groups), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        undo.callback(_end, container)
        wait_until(lambda: _first_process(container.pid) or container.poll() is not None, within_s=BOOT_S)
        leader = _first_process(container.pid)
        assert leader is not None, (layers / f"{name}.log").read_text()
        one = Machine(name, here.address(number), root, leader)
        undo.callback(one.power_off)
        wait_until(lambda: "running" in one.run("systemctl is-system-running", check=False), one.complaints, BOOT_S)
        yield one


def _layered(root: Path, layer: Path, undo: ExitStack) -> None:
    for folder in (root, layer / "upper", layer / "work"):
        folder.mkdir(parents=True)
    options = f"lowerdir={make_base()},upperdir={layer / 'upper'},workdir={layer / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)], check=True)
    undo.callback(subprocess.run, ["umount", "--lazy", str(root)], check=False)


def _control_groups(name: str, undo: ExitStack) -> list[Path]:
    """Return control groups of its own. In another machine's group, systemd would end its processes."""
    found = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options):
            found.append(Path(where, name))
            found[-1].mkdir()
            undo.callback(_remove_groups, found[-1])
    return found


def _remove_groups(folder: Path) -> None:
    for inner in sorted(folder.rglob("*/"), reverse=True):
        if inner.is_dir():
            inner.rmdir()
    folder.rmdir()


def _boot(root: Path, space: str, groups: Sequence[Path]) -> list[str]:
    enter = 'for group in "${@:2:$1}"; do echo $$ >"$group/cgroup.procs"; done; exec "${@:$1+2}"'
    return [
        "bash", "-euc", enter, "bash", str(len(groups)), *map(str, groups),
        "systemd-nspawn", "--boot", "--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--resolv-conf=off",
        "--console=read-only", f"--network-namespace-path=/run/netns/{space}", f"--directory={root}",
        f"--bind-ro={CHECKOUT}",
    ]  # fmt: skip


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _first_process(container: int) -> int | None:
    """Return the process with the number 1 in the machine. systemd-nspawn has another child before."""
    for pid in _children(container):
        with suppress(OSError):  # it has just ended
            numbers = re.search(r"^NSpid:(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            if numbers and numbers[1].split()[1:] == ["1"]:
                return pid
    return None


def _end(container: subprocess.Popen[bytes]) -> None:
    try:
        container.wait(STOP_S)
    except subprocess.TimeoutExpired:
        for child in _children(container.pid):
            os.kill(child, 9)
        container.wait()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
