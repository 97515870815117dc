"""Writes docs/reference/slurm-words.md from the tables: `.venv/bin/python -m tests.lifecycle.slurm_words_page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from deepgrid.lifecycle import ends
from deepgrid.lifecycle.pending_reasons import LIMITS, REASONS, UNKNOWN, Outlook, Patience, PendingReason
from deepgrid.slurm.commands.complaints import COMPLAINTS, POLICY, Kind
from deepgrid.slurm.commands.node_states import NODE_WORDS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "slurm-words.md"
HEAD = """# Slurm's words

What the supervisor does with Slurm's reasons, errors and final states. `tests/lifecycle/slurm_words_page.py` generates
this page from the tables in the code.
"""
REASONS_HEAD = """## Why a job waits

A job that waits in Slurm has a reason (`squeue -o %r`). The supervisor gives a job back to the grid when it has waited
too long for its reason. That costs the customer nothing.

| the reason | the job is given back |
|---|---|
"""
NAMED = {
    Outlook.PASSES: "never: the customer may cancel it",
    Outlook.MAY_PASS: "after {room:.0f} hours (`room_hours` of the provider block)",
    Outlook.HELD: "after {held:.0f} minutes (`held_minutes` of the provider block)",
    Outlook.NEVER: "at once",
}
ERRORS_HEAD = """## Why sbatch fails

The error of sbatch decides: the text after `Batch job submission failed:`, or its last line. Lines before the error
belong to the site and decide nothing. Any other error is final: the job is given back. `scontrol update` and the
queries are read with the same table.

| Slurm's error begins with | it means | Slurm |
|---|---|---|
"""
ENDS_HEAD = """## How a job ends

*Billed* means the started minutes of what ran, at most the minutes that were bought.
[Billing](../explanation/billing.md) says how each end is known.

| Slurm's state | the job becomes | billed | the customer reads |
|---|---|---|---|
"""
NODES_HEAD = """## Nodes

A node has one state and any number of flags (`scontrol show node`). It is as usable as its worst word. A node that
Slurm starts does not respond yet, which does not count then. Any other word is not usable, and is logged once.

| Slurm's word | a node with it is | which means |
|---|---|---|
"""
OTHERS = {
    "FAILED_LAUNCH": "`FAILED` as it could not be launched, soon",
    "HAD_RUN": "`FAILED` as it could not be launched, late",
    "REQUEUED": "any, of a job that Slurm queued again",
    "CANCELLED_BY_CUSTOMER": "`CANCELLED` on the customer's request",
    "CANCELLED_BY_SITE": "`CANCELLED` by another account",
    "CANCELLED_BY_ITSELF": "`CANCELLED` by the job's own account, or by an unknown one",
    "ENDED_EARLY": "`TIMEOUT` before the time limit that the supervisor gave",
}


def page() -> str:
    """Return the text of the page."""
    parts = [
        HEAD,
        REASONS_HEAD + _rows(_patience()),
        _reasons(),
        ERRORS_HEAD + _rows(_errors()),
        ENDS_HEAD + _rows(_ends()),
        NODES_HEAD + _rows(_nodes()),
    ]
    return "\n".join(parts)


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _patience() -> Iterator[tuple[str, str]]:
    patience = Patience()
    for outlook, when in NAMED.items():
        yield outlook.value, when.format(room=patience.room_s / 3600, held=patience.held_s / 60)


def _reasons() -> str:
    head = "| Slurm's reason | it | the customer reads | what the administrator can do |\n|---|---|---|---|\n"
    table = (*REASONS, *LIMITS, UNKNOWN)
    rows = [_reason(reason) for outlook in Outlook for reason in table if reason.outlook is outlook]
    return head + _rows(rows)


def _reason(reason: PendingReason) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for names in reason.names for name in names.split(", ")) or "any other"
    return names, reason.outlook.value, reason.customer, reason.provider


def _errors() -> Iterator[tuple[str, ...]]:
    for one in COMPLAINTS:
        for texts in batched(one.texts, 10):
            yield ", ".join(f"`{text.strip()}`" for text in texts), one.cause, one.kind.value
    policy = f"`{POLICY}`, after the name of a limit with `Submit`"
    yield policy, "the account may submit no more jobs", Kind.LIMIT.value
    yield "any other", "Slurm decided", Kind.FINAL.value


def batched(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield as many texts at a time as a cell of a table holds."""
    for first in range(0, len(texts), size):
        yield texts[first : first + size]


def _ends() -> Iterator[tuple[str, ...]]:
    named = [(f"`{state}`", end) for state, end in ends.ENDS.items()]
    named += [(how, getattr(ends, name)) for name, how in OTHERS.items()]
    for how, end in named:
        yield how, end.status.words, "what ran" if end.billed else "nothing", end.error


def _nodes() -> Iterator[tuple[str, ...]]:
    for word, (use, meaning) in NODE_WORDS.items():
        yield f"`{word}`", use.value, meaning


if __name__ == "__main__":
    PAGE.write_text(page())
