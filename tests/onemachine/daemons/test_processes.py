"""Daemons are found again, stopped with what they left, and never mistaken for strangers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.probes import answers
from deployments.onemachine.daemons.processes import Daemon, ProcessTable, nginx
from tests.waiting import wait_until

SLEEPER = ["sleep", "300"]


def runs(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def with_child(note: Path) -> list[str]:
    """Return a program that starts a child in its group, notes the child's id, and waits."""
    code = (
        "import subprocess, sys; child = subprocess.Popen(['sleep', '300']); "
        "open(sys.argv[1], 'w').write(str(child.pid)); child.wait()"
    )
    return [sys.executable, "-c", code, str(note)]


def noted(note: Path) -> int:
    wait_until(lambda: note.exists() and note.read_text() != "")
    return int(note.read_text())


def test_another_table_finds_and_stops_what_the_first_started(table: ProcessTable) -> None:
    table.start(Daemon("one", SLEEPER))
    pid = table.pid("one") or 0
    later = ProcessTable(table.run_dir.parent)
    assert later.names() == ["one"]
    assert later.pid("one") == pid
    assert runs(pid)
    later.stop("one")
    assert not runs(pid)
    assert later.names() == []


def test_starting_what_runs_changes_nothing(table: ProcessTable) -> None:
    table.start(Daemon("one", SLEEPER))
    pid = table.pid("one")
    table.start(Daemon("one", SLEEPER))
    assert table.pid("one") == pid


def test_a_running_nginx_reads_its_new_file(table: ProcessTable, tmp_path: Path) -> None:
    """After an upgrade, `./run up` writes a new file for an nginx that never stopped."""
    file = tmp_path / "nginx.conf"
    port = PortBook(tmp_path / "ports.json").port("proxy")

    def serve(path: str) -> None:
        rule = f"location = {path} {{ return 204; }}"
        paths = "".join(
            f"{kind}_temp_path {tmp_path};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        server = f"access_log off; {paths} server {{ listen 127.0.0.1:{port}; {rule} }}"
        file.write_text(f"daemon off; pid {tmp_path}/pid; events {{}} http {{ {server} }}")
        table.serve(nginx("proxy", file, lambda: answers(port, path)))

    serve("/first")
    pid = table.pid("proxy")
    serve("/second")
    assert table.pid("proxy") == pid


def test_what_was_killed_is_dead_on_record_and_starts_again(table: ProcessTable) -> None:
    table.start(Daemon("one", SLEEPER))
    first = table.pid("one")
    table.stop("one", signal.SIGKILL)
    assert not table.alive("one")
    assert table.names() == ["one"]
    table.start(Daemon("one", SLEEPER))
    assert table.pid("one") not in (None, first)


def test_stopping_ends_the_children_too(table: ProcessTable, tmp_path: Path) -> None:
    table.start(Daemon("parent", with_child(tmp_path / "child")))
    child = noted(tmp_path / "child")
    table.stop("parent")
    wait_until(lambda: not runs(child))


def test_children_of_a_killed_process_are_ended_before_it_starts_again(table: ProcessTable, tmp_path: Path) -> None:
    table.start(Daemon("parent", with_child(tmp_path / "child")))
    child = noted(tmp_path / "child")
    table.stop("parent", signal.SIGKILL)
    assert runs(child)
    table.start(Daemon("parent", SLEEPER))
    wait_until(lambda: not runs(child))


def test_a_reused_process_id_is_neither_ours_nor_stopped(table: ProcessTable) -> None:
    """After a reboot, a record can have the id of another process and its group."""
    stranger = subprocess.Popen(SLEEPER, start_new_session=True)
    try:
        record = {"pid": stranger.pid, "born": 1, "stop_signal": int(signal.SIGTERM), "stop_within_s": 1.0}
        (table.run_dir / "old.json").write_text(json.dumps(record))
        assert not table.alive("old")
        table.start(Daemon("old", SLEEPER))
        assert table.pid("old") != stranger.pid
        (table.run_dir / "older.json").write_text(json.dumps(record))
        table.stop("older")
        assert table.names() == ["old"]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_one_that_ignores_its_signal_is_killed(table: ProcessTable, tmp_path: Path) -> None:
    deaf = f"trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 300; done"
    table.start(Daemon("deaf", ["sh", "-c", deaf], stop_within_s=0.2))
    wait_until((tmp_path / "deaf").exists)
    pid = table.pid("deaf") or 0
    assert runs(pid)
    table.stop("deaf")
    wait_until(lambda: not runs(pid))


def test_readiness_is_awaited(table: ProcessTable, tmp_path: Path) -> None:
    flag = tmp_path / "ready"
    daemon = Daemon("slow", ["sh", "-c", f"touch {flag}; exec sleep 300"], ready=flag.exists)
    table.start(daemon)
    table.wait_ready(daemon)
    assert flag.exists()


def test_one_that_dies_while_starting_is_an_error_with_the_end_of_its_log(table: ProcessTable) -> None:
    daemon = Daemon("broken", ["sh", "-c", "echo no such luck >&2; exit 3"], ready=lambda: False)
    table.start(daemon)
    with pytest.raises(ConfigurationError, match=r"broken ended while starting[\s\S]*no such luck"):
        table.wait_ready(daemon)


def test_one_that_never_serves_is_an_error(table: ProcessTable) -> None:
    daemon = Daemon("idle", SLEEPER, ready=lambda: False, ready_within_s=0.1)
    table.start(daemon)
    with pytest.raises(ConfigurationError, match="idle does not serve after"):
        table.wait_ready(daemon)


def test_names_come_in_the_order_of_their_start(table: ProcessTable) -> None:
    for name in ("b", "a", "c"):
        table.start(Daemon(name, SLEEPER))
    assert table.names() == ["b", "a", "c"]


def test_a_daemon_gets_its_environment_and_is_detached(table: ProcessTable) -> None:
    table.start(Daemon("one", SLEEPER, env={"COLOUR": "blue"}))
    pid = table.pid("one")
    assert pid is not None
    wait_until(lambda: b"COLOUR=blue\0" in Path(f"/proc/{pid}/environ").read_bytes())
    assert os.getsid(pid) == pid
