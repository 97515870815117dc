"""Liveness: a need that does not answer within the patience leads to a complaint."""

from __future__ import annotations

from deepgrid.observability.metrics import Liveness, Need


def test_complaints_follow_the_monotonic_clock() -> None:
    now = 1000.0
    liveness = Liveness(lambda: now)
    assert liveness.complaints() == []  # nothing has answered yet, but the patience is not used up
    now += liveness.patience_s + 1
    assert len(liveness.complaints()) == 3  # login, Slurm and chain; Prefect's API is not essential
    for need in (Need.LOGIN, Need.SLURM, Need.CHAIN):
        liveness.note(need)
    assert liveness.complaints() == []
    with liveness.expecting(Need.BLOCKS):
        now += liveness.patience_s + 1
        liveness.note(Need.LOGIN)
        assert [words.split(" has ")[0] for words in sorted(liveness.complaints())] == [
            "Slurm", "The chain as it is followed", "The chain's node",
        ]  # fmt: skip
    assert len(liveness.complaints()) == 2
