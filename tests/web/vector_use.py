"""Vectors of what jobs used of what they asked for, by Python's rules."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deepgrid.billing.resource_use import Measured, resource_use
from deepgrid.billing.use_samples import UseHistory, UseSample

HELD = "cpu=4,mem=400M,node=1"
CASES = (
    (4, 400, 120, f"{HELD},used/cpu=108,used/mem=85M"),
    (4, 400, 60, f"{HELD},used/cpu=15,used/mem=101M,used/read=3M,used/written=1200M"),
    (1, 128, 59, "used/cpu=59,used/mem=1M"),
    (2, 64_000, 9, "used/cpu=18,used/mem=64000M"),
    (8, 8_000, 3600, "used/written=12M"),
    (3, 1_250, 100, "used/cpu=75,used/mem=1250M,used/read=1750M"),
    (1, 100, 100, ""),
    (1, 100, 100, "used/cpu=90,used/gpu=140,used/gpumem=38888M"),
    (8, 400, 100, "used/cpu=90,used/mem=1M,used/gpu=50"),
    (1, 100, 100, "used/cpu=-5,used/mem=3G,unused/mem=7M,used/read=9999999999999"),
)

GPUS = 2
SAMPLES = (
    (),
    (UseSample(cpu_s=25, memory_mb=200, read_mb=1, written_mb=2, run_s=30),),
    (UseSample(cpu_s=30, memory_mb=400, run_s=30), UseSample(cpu_s=150, memory_mb=100, run_s=90)),
    (UseSample(cpu_s=9, gpu_percent=140, gpu_memory_mb=9, run_s=60), UseSample(run_s=90), UseSample(cpu_s=3, run_s=99)),
)


def uses() -> dict[str, Any]:
    """Return cases of a receipt, and the words that follow."""
    found = []
    for cpus, memory_mb, run_s, tres in CASES:
        use = resource_use(cpus, memory_mb, run_s, Measured.of_tres(tres), GPUS)
        case = {"cpus": cpus, "memory_mb": memory_mb, "gpus": GPUS, "run_s": run_s, "tres": tres}
        found.append({**case, "words": use.words, "hint": use.hint})
    return {"uses": found, "over_time": [_over_time(samples) for samples in SAMPLES]}


def _over_time(samples: tuple[UseSample, ...]) -> dict[str, Any]:
    history = UseHistory(2, 800, GPUS, samples)
    use = history.so_far
    figures = {"samples": [asdict(one) for one in samples], "cpus": history.cpus}
    return {**figures, "words": use.words, "hint": use.hint}
