"""Only changes of measured labels may be approved automatically."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.scheduling.proposals import Proposal

OWN = (Label("name", "alpha"), Label("region", "ch"))
MEASURED = (Label("compute.gflops", "10.00"), Label("os", "linux"))
APPROVED = Provider(
    address="0xa", hardware=Hardware((0, 1), (4, 4), (8000, 8000)), prices=Prices(3, 2, 1), labels=OWN + MEASURED,
    approved=True, banned=False, waiting_for_approval=True,
)  # fmt: skip


def measured(*labels: Label) -> Provider:
    return replace(APPROVED, labels=OWN + labels)


@pytest.mark.parametrize(
    "proposed",
    [
        APPROVED,
        measured(Label("compute.gflops", "9.00"), Label("os", "linux")),
        measured(),
        measured(*MEASURED, Label("network.p2p.latency.us", "1.20")),
        replace(APPROVED, labels=tuple(reversed(OWN + MEASURED))),
    ],
)
def test_measurements_alone_concern_nobody(proposed: Provider) -> None:
    assert Proposal(proposed, APPROVED).concern == ""


@pytest.mark.parametrize(
    ("proposed", "concern"),
    [
        (replace(APPROVED, prices=Prices(3, 2, 2)), "its prices would change"),
        (replace(APPROVED, hardware=Hardware((1, 0), (4, 4), (8000, 8000))), "its hardware would change"),
        (replace(APPROVED, labels=MEASURED), "its own labels would change"),
        (replace(APPROVED, labels=(*APPROVED.labels, Label("region", "fr"))), "its own labels would change"),
        (replace(APPROVED, labels=(*APPROVED.labels, OWN[0])), "its own labels would change"),
        (replace(APPROVED, labels=(*OWN, Label("compute.gflops ", "9.00"))), "its own labels would change"),
        (
            replace(APPROVED, prices=Prices(0, 0, 0), labels=()),
            "its prices and its own labels would change",
        ),
        (measured(*MEASURED, Label("compute.gflops", "1.00")), "its measured labels are not of the usual form"),
        (measured(Label("gpu", "Nvidia; any")), "its measured labels are not of the usual form"),
    ],
)
def test_all_else_waits_for_a_person(proposed: Provider, concern: str) -> None:
    assert Proposal(proposed, APPROVED).concern == concern


def test_a_newcomer_and_a_banned_one_wait() -> None:
    newcomer = Proposal(replace(APPROVED, approved=False), None)
    assert (newcomer.name, newcomer.concern) == ("alpha", "it is new")
    assert Proposal(APPROVED, replace(APPROVED, banned=True)).concern == "it is banned"
