"""Tables of pandas: one row per job, cluster, offer or place of a sweep. Amounts are exact Decimals of credits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepgrid.extras import needs

if TYPE_CHECKING:
    import pandas as pd

JOB = ("id", "name", "status", "cluster", "submitted", "started", "ended", "exit_code", "rate", "locked")
CLUSTER = (
    "name",
    "address",
    "approved",
    "nodes",
    "cpus",
    "memory_mb",
    "gpus",
    "cpu_price",
    "memory_price",
    "gpu_price",
)
OFFER = ("cluster", "address", "fits", "obstacle", "rate", "minutes", "start", "wait_s", "speed", "reliability")
PLACE = ("at", "job_id", "status", "outcome", "cluster", "cost", "attempts", "failed")
Sets = Mapping[str, object] | Sequence[Mapping[str, object]] | None


def frame_of(rows: Iterable[object], columns: Sequence[str], parameters: Sequence[Sets] = ()) -> pd.DataFrame:
    """Return these attributes of each row. The parameters of the row come first, under their own names.

    Raises ConfigurationError if pandas is not installed.
    """
    with needs("bills"):
        import pandas as pd
    found = list(rows)
    sets = [_join_sets(one) for one in parameters] or [{}] * len(found)
    names = [name for name in dict.fromkeys(name for one in sets for name in one) if name not in columns]
    values: list[list[Any]] = [
        [one.get(name) for name in names] + [getattr(row, column) for column in columns]
        for row, one in zip(found, sets, strict=True)
    ]
    return pd.DataFrame(values, columns=[*names, *columns], dtype=object)


def _join_sets(sets: Sets) -> Mapping[str, object]:
    """Return one value per parameter. The values of packed sets are joined with commas."""
    if sets is None or isinstance(sets, Mapping):
        return sets or {}
    names = dict.fromkeys(name for one in sets for name in one)
    return {name: ", ".join(str(one[name]) for one in sets if name in one) for name in names}
