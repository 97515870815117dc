"""Actions of maintenance flows in a line, in a row, and in one sentence with their counts."""

from __future__ import annotations

from deepgrid.observability.action_taken import NAMED, ActionTaken, summary

TAKEN = ActionTaken("took back", "job", "alpha was late", 7, customer="0xc", cluster="alpha", cost_wei=0)


def test_a_line_and_a_row_name_what_applies() -> None:
    assert TAKEN.words == ("took back job: job=7 customer=0xc cluster=alpha credits=0: alpha was late")
    assert TAKEN.row() == {
        "action": "took back job",
        "job": 7,
        "customer": "0xc",
        "cluster": "alpha",
        "credits": "0",
        "reason": "alpha was late",
    }
    assert ActionTaken("removed", "folder").words == "removed folder"


def test_a_sentence_has_the_counts_and_some_ids() -> None:
    many = [ActionTaken("settled", "job", job_id=job_id) for job_id in range(1, NAMED + 2)]
    assert summary([]) == ""
    assert summary([TAKEN]) == "Took back 1 job (7)."
    assert summary([TAKEN, *many]) == "Took back 1 job (7) and settled 6 jobs (1, 2, 3, 4, 5, …)."
    deleted = ActionTaken("deleted", "round", count=12)
    assert summary([TAKEN, deleted, many[0]]) == "Took back 1 job (7), deleted 12 rounds and settled 1 job (1)."
