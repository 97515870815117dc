"""Modules that take too much, reach out or never end are refused quickly, in words."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from tests.modules.support import HEAD, Origin, faults, folder, load


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(10**9) %}x{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{{ 'x' * 10**10 }}",
        "{{ 10**(10**10) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('touch canary').read() }}",
        "{% include '/etc/passwd' %}",
        "{{ inputs.update({'A': 'x'}) }}",
        "{{ (" * 20_000,
    ],
    ids=lambda text: str(text)[:30],
)
def test_templates_that_take_too_much_or_reach_out_are_refused(text: str, cache: Path, tmp_path: Path) -> None:
    folder(HEAD + f"steps: []\n# {text}\n")
    (found,) = faults("- use: {source: ./m}\n", cache, template_cpu_s=1)
    assert "template" in found or "becomes larger" in found
    assert not (tmp_path / "canary").exists()


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (bomb(), "too large once its aliases are expanded"),
        (HEAD + "steps: " + "[" * 2000, "nested deeper than 64 levels"),
        ("#" * (10 * 1024 * 1024), "is larger than 256 KiB"),
        (HEAD + "steps: []\n# {% for a in range(9999) %}{{ 'xxxx' * 10 }}{% endfor %}", "becomes larger than 256 KiB"),
        (HEAD + "inputs: " + "[" * 2000, "nested deeper than 64 levels"),
    ],
    ids=["laughs", "deep", "10 MB", "grows", "deep inputs"],
)
def test_bombs_in_modules_are_refused(text: str, fault: str, cache: Path, origin: Origin) -> None:
    origin.commit(text)
    folder(text)
    for source in ("./m", origin.url)[: 2 if "256" in fault else 1]:
        (found,) = faults(f"- use: {{source: '{source}'}}\n", cache)
        assert fault in found


def test_modules_are_bounded_in_depth_number_and_time(cache: Path) -> None:
    folder(HEAD + "steps: [{use: {source: ../m}}]\n")
    (found,) = faults("- use: {source: ./m}\n", cache)
    assert found.startswith("m/module.yaml:4:24: steps[0].use.source: is nested in more than 8 modules (used by m/mod")
    folder(HEAD + "steps: []\n")
    assert faults("- use: {source: ./m}\n" * 4, cache, uses=2)[0].endswith(
        "steps[2].use.source: is one of more than 2 modules in all"
    )
    assert faults("- use: {source: ./m}\n", cache, within_s=-1.0)[0].endswith(
        "resolving all modules takes longer than -1 s"
    )


def test_limits_of_the_whole_job_count_the_steps_of_modules(cache: Path) -> None:
    folder(HEAD + "steps:\n{% for n in range(600) %}\n- {name: x}\n{% endfor %}\n")
    (found,) = faults("- use: {source: ./m}\n- use: {source: ./m}\n", cache)
    assert "must not have more than 1000 steps in all" in found
    folder(HEAD + "steps: " + "[{steps: " * 14 + "[]" + "}]" * 14)
    (found,) = faults("- steps: [{steps: [{use: {source: ./m}}]}]\n", cache)
    assert "is nested deeper than 16 steps (used by job.yaml:3:" in found
    folder(HEAD + "steps: [{run: {command: '" + "x" * 100_000 + "'}}]\n")
    (found,) = faults("- use: {source: ./m}\n" * 3, cache)
    assert "larger than 256 KiB" in found


@pytest.mark.parametrize(
    ("setting", "path"), [("core.hooksPath", "hooks"), ("core.fsmonitor", "fsmonitor")], ids=["hooks", "fsmonitor"]
)
def test_git_runs_nothing_of_the_repository(
    setting: str, path: str, origin: Origin, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git does not even run commands from the user's own configuration."""
    hooks = tmp_path / path
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    value = hooks if path == "hooks" else hooks / "post-checkout"
    config.write_text(f"[{setting.split('.')[0]}]\n\t{setting.split('.')[1]} = {value}\n")
    origin.commit(HEAD + "steps: []\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(config.read_text())
    load(f"- use: {{source: '{origin.url}'}}\n", cache)
    assert not (tmp_path / "canary").exists()


def test_a_repository_too_large_is_refused(origin: Origin, cache: Path) -> None:
    (origin.folder / "large").write_bytes(random.Random(1).randbytes(300_000))
    origin.commit(HEAD + "steps: []\n")
    (found,) = faults(f"- use: {{source: '{origin.url}'}}\n", cache, repository_bytes=64 * 512)
    assert "steps[0].use.source: git" in found


def test_a_server_that_says_nothing_is_left(cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}/a/b@v1"
        (found,) = faults(f"- use: {{source: '{address}'}}\n", cache, fetch_within_s=0.5)
    assert "git did not answer in time; try again later" in found
