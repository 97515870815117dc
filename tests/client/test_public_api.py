"""A release keeps the promises of the previous one: a breaking change needs a new major version. The file
tools/public_api/released.txt has the promised API. Each release writes it.
"""

from __future__ import annotations

import pytest

from tools.public_api import snapshot

RELEASED = snapshot.RELEASED.read_text()


def test_no_public_name_breaks_without_a_major_version() -> None:
    broken = snapshot.breaking_changes(RELEASED, snapshot.current())
    assert not broken or snapshot.may_break(RELEASED), (
        "Users of the last release would have to change their programs. Keep the old form, or let the major version"
        f" grow and run `.venv/bin/python -m tools.public_api`:\n{chr(10).join(broken)}"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    def cancel(self)", "    def stop(self)", "Job.cancel"),
        ("minutes: int = 60", "minutes: int = 30", "minutes"),
        ("job_id: int)", "number: int)", "job_id"),
        ("class Grid(", "class Cloud(", "Grid"),
    ],
)
def test_a_breaking_change_is_named(old: str, new: str, said: str) -> None:
    assert old in RELEASED
    assert said in "\n".join(snapshot.breaking_changes(RELEASED, RELEASED.replace(old, new)))


def test_an_addition_breaks_nothing() -> None:
    more = RELEASED.replace("quote: Quote | None = None", "quote: Quote | None = None, more: int = 0")
    assert more != RELEASED
    assert snapshot.breaking_changes(RELEASED, f"{more}\ndef added(): ...\n") == []


@pytest.mark.parametrize(
    ("released", "version", "allowed"),
    [("1.2.0", "1.3.0", False), ("1.2.0", "2.0.0", True), ("0.1.0", "0.1.9", False), ("0.1.0", "0.2.0", True)],
)
def test_a_major_version_may_break(released: str, version: str, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "version", lambda: version)
    assert snapshot.may_break(f"{snapshot.TITLE}{released}: text\n") is allowed
