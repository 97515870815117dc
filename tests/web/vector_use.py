"""Vectors of what jobs used of what they asked for, by Python's rules."""

from __future__ import annotations

from typing import Any

from deepgrid.billing.resource_use import Measured, resource_use

HELD = "cpu=4,mem=400M,node=1"
CASES = (
    (4, 400, 120, f"{HELD},used/cpu=108,used/mem=85M"),
    (4, 400, 60, f"{HELD},used/cpu=15,used/mem=101M,used/read=3M,used/written=1200M"),
    (1, 128, 59, "used/cpu=59,used/mem=1M"),
    (2, 64_000, 9, "used/cpu=18,used/mem=64000M"),
    (8, 8_000, 3600, "used/written=12M"),
    (3, 1_250, 100, "used/cpu=75,used/mem=1250M,used/read=1750M"),
    (1, 100, 100, ""),
    (1, 100, 100, "used/cpu=-5,used/mem=3G,unused/mem=7M,used/read=9999999999999"),
)


def uses() -> dict[str, Any]:
    """Return cases of a receipt, and the words that follow."""
    found = []
    for cpus, memory_mb, run_s, tres in CASES:
        use = resource_use(cpus, memory_mb, run_s, Measured.of_tres(tres))
        case = {"cpus": cpus, "memory_mb": memory_mb, "run_s": run_s, "tres": tres}
        found.append({**case, "words": use.words, "hint": use.hint})
    return {"uses": found}
