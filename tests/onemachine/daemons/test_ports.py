"""Ports are free when they are chosen, stay the same, and are given up when another program has taken them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deployments.onemachine.daemons.ports import PortBook


def listening(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_a_port_is_the_same_ever_after_and_nobody_elses(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    ports = {name: book.port(name) for name in ("a", "b", "c")}
    assert len(set(ports.values())) == 3
    again = PortBook(tmp_path / "ports.json")
    assert {name: again.port(name) for name in ports} == ports
    assert again.known("a") == ports["a"]
    assert again.known("d") is None


def test_a_taken_port_is_not_chosen(tmp_path: Path) -> None:
    chosen = PortBook(tmp_path / "ports.json").port("a")
    with listening(chosen):
        (tmp_path / "ports.json").unlink()
        assert PortBook(tmp_path / "ports.json").port("a") != chosen


def test_only_a_port_that_a_stranger_took_is_given_up(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    ours, taken, free = book.port("ours"), book.port("taken"), book.port("free")
    with listening(ours), listening(taken):
        book.forget_taken(lambda name: name == "ours")
        assert book.known("ours") == ours
        assert book.known("free") == free
        assert book.known("taken") is None
        assert book.port("taken") != taken


def test_a_range_of_ports_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPGRID_PORTS", "33000-33003")
    book = PortBook(tmp_path / "ports.json")
    with pytest.raises(ConfigurationError, match="No free port between 33000 and 33003"):
        for name in "abcd":
            assert 33000 <= book.port(name) < 33003
    monkeypatch.setenv("DEEPGRID_PORTS", "many")
    with pytest.raises(ConfigurationError, match="DEEPGRID_PORTS is 'many', not a range"):
        book.port("e")
