"""The claims of the books as a pandas table, for a person who opens it. Columns hold Python objects: wei stay exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from deepgrid.billing.columns.claims import IS_GIVEN_BACK, IS_OPEN, IS_SETTLED, MONEY, OF_SLURM, OUTCOMES, Array, Claims
from deepgrid.billing.columns.entry_tables import MISSING, numbers, words
from deepgrid.lifecycle.states import JobStatus


def frame(claims: Claims, difference: list[str], *, has_slurm: bool) -> pd.DataFrame:
    """Return one row per claim. Missing values are None.

    `ran` is in started minutes. `expected` are the minutes to bill by the contract's rules, None where nothing was
    settled. `difference` has the names of the differences of each row. A claim that only Slurm knows has no `outcome`,
    and a row only if it differs.
    """
    shown = (claims.outcome != OF_SLURM) | np.array([bool(one) for one in difference], dtype=bool)
    settled = claims.outcome == IS_SETTLED
    columns: dict[str, list[Any]] = {
        "job_id": claims.job_id.tolist(),
        "claimed_at": claims.claimed_at.tolist(),
        "outcome": [OUTCOMES[code] for code in claims.outcome.tolist()],
        "status": _statuses(claims),
        "provider": claims.addresses("provider"),
        "customer": claims.addresses("customer"),
        "billed": claims.billed.tolist(),
        **{name: claims.money[name].tolist() for name in MONEY},
        "tx": _transactions(claims),
    }
    if has_slurm:
        columns |= _slurm_columns(claims)
    columns["ran"] = claims.runs.minutes.tolist()
    columns["expected"] = _or_none(claims.expected, settled & has_slurm)
    columns["difference"] = difference
    rows = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    return pd.DataFrame(rows[shown].reset_index(drop=True))


def _slurm_columns(claims: Claims) -> dict[str, list[Any]]:
    runs, first, began = claims.tables.runs, claims.runs.first, claims.runs.began
    states, names = words(runs, "state")
    known = first >= 0
    places = np.maximum(first, 0)
    some = len(runs) > 0
    state = [names[code] for code in states[places]] if some else [None] * len(first)
    columns = {"slurm_state": [word if has else None for word, has in zip(state, known.tolist(), strict=True)]}
    for name, column, has in (
        ("slurm_id", "slurm_id", known),
        ("slurm_start", "started_at", began),
        ("slurm_end", "ended_at", known),
    ):
        values = numbers(runs, column)[places] if some else np.full(len(first), MISSING)
        columns[name] = _or_none(values, has & (values != MISSING))
    order = ("slurm_id", "slurm_state", "slurm_start", "slurm_end")
    return {name: columns[name] for name in order} | {"starts": _or_none(claims.runs.starts, known)}


def _statuses(claims: Claims) -> list[str | None]:
    named = {IS_GIVEN_BACK: "given back", OF_SLURM: None}
    status = claims.of_job("status").tolist()
    found: list[str | None] = []
    for outcome, code in zip(claims.outcome.tolist(), status, strict=True):
        later = outcome == IS_OPEN and JobStatus(code).cold
        found.append(named.get(outcome, "settled later" if later else JobStatus(code).words))
    return found


def _transactions(claims: Claims) -> list[str | None]:
    settled = claims.tables.settlements["tx_hash"].to_pylist()
    claimed = claims.tables.claims["tx_hash"].to_pylist()
    places = zip(claims.settlement.tolist(), claims.given_back.tolist(), claims.outcome.tolist(), strict=True)
    return [
        settled[end] if end >= 0 else claimed[back] if back >= 0 else None if outcome == OF_SLURM else ""
        for end, back, outcome in places
    ]


def _or_none(values: Array, known: Array) -> list[int | None]:
    return [value if has else None for value, has in zip(values.tolist(), known.tolist(), strict=True)]
