"""The standard labels from measurements and looks at nodes, and how they are merged with a provider's own labels.

Keys are for example `compute.gflops`, `network.p2p.latency.us` and `storage.scratch.read.iops`. A number has
two decimals. A text is normalised, so that customers can use it without quoting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from deepgrid.benchmark.settings import VOLUMES
from deepgrid.lifecycle.feature_labels import FEATURES
from deepgrid.lifecycle.gpu_types import is_gpu_type
from deepgrid.lifecycle.job import Label

DEGRADED = "benchmark.degraded"  # the key of the figure that dropped most
GROUPS = ("compute", "network", "network.internet", "storage")  # each names its program, and has a remark at need
DROP_PERCENT = 15  # of the median of the last results; a larger drop marks the cluster degraded
MOVED_PERCENT = 5  # a smaller change of a figure does not count

_KEYS = frozenset(
    ["cpu", "cpu.microarch", "os", "arch", "gpu", "compute.gflops", DEGRADED, *FEATURES]
    + [f"{what}.{fact}" for what in GROUPS for fact in ("benchmark", "remark")]
    + [f"network.{way}.bw.mbps" for way in ("upload", "download", "p2p")]
    + [f"network.{pattern}.us" for pattern in ("p2p.latency", "p2p.latency.1b")]
    + [f"network.all-to-all.{pattern}.us" for pattern in ("latency", "latency.8b")]
    + [
        f"storage.{volume}.{access}.{figure}"
        for volume in VOLUMES
        for access in ("read", "write")
        for figure in ("bw.mibps", "iops")
    ]
)
_PLAIN = re.compile(r"[a-zA-Z0-9._](?:[-a-zA-Z0-9._]*[a-zA-Z0-9._])?")


def is_measured(key: str) -> bool:
    """Return whether a label of this key comes from a measurement, from a look at a node, or from Slurm."""
    return key in _KEYS or is_gpu_type(key)


def normalise(text: str) -> str:
    """Return a key or a value in normal form: lower-case runs of plain characters, joined by `-`."""
    return "-".join(_PLAIN.findall(text)).lower()


def number(value: float) -> str:
    """Return a measured figure as a label's value. Raises ValueError when it is not finite."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite figure.")
    return str(Decimal(str(value)).quantize(Decimal("0.01"), rounding=ROUND_HALF_EVEN))


def labels_of(values: Mapping[str, str]) -> tuple[Label, ...]:
    """Measured labels of these keys and values, normalised and sorted by key. Empty values are left out."""
    plain = {normalise(key): normalise(value) for key, value in values.items()}
    return tuple(Label(key, value) for key, value in sorted(plain.items()) if value)


def measured_of(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the measured labels among `labels`."""
    return tuple(label for label in labels if is_measured(label.key))


def merge(own: tuple[Label, ...], measured: tuple[Label, ...]) -> tuple[Label, ...]:
    """Both merged, sorted by key. The provider's own label wins where both have a key."""
    joined = {label.key: label for label in (*measured, *own)}
    return tuple(joined[key] for key in sorted(joined))


def has_moved(old: tuple[Label, ...], new: tuple[Label, ...]) -> bool:
    """Return whether `new` differs from `old`: a key came or went, a text changed, or a figure moved by over 5 %."""
    before, after = values_of(old), values_of(new)
    return before.keys() != after.keys() or any(has_value_moved(before[key], after[key]) for key in after)


def has_value_moved(old: str, new: str) -> bool:
    """Return whether a text changed, or a figure moved by more than 5 % of its old value."""
    before, after = _figure(old), _figure(new)
    if before is None or after is None:
        return old != new
    return 100 * abs(after - before) > MOVED_PERCENT * abs(before)


def values_of(labels: tuple[Label, ...]) -> dict[str, str]:
    """Return the values by key."""
    return {label.key: label.value for label in labels}


def _figure(text: str) -> Decimal | None:
    try:
        figure = Decimal(text)
    except InvalidOperation:
        return None
    return figure if figure.is_finite() else None
