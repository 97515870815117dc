"""The job and the prices of the worked cases, which the Solidity tests use too."""

from __future__ import annotations

from deepgrid.lifecycle.job import JobDefinition, Prices

HUNDREDTH = 10**16  # wei; the worked cases count in hundredths of a credit
CUT_PERCENT = 20
DEFINITION = JobDefinition(gpus=1, mem_per_cpu_mb=1000, cpus_per_task=2, ntasks=3, definition_hash="")
PRICES = Prices(8 * 10**18, 10**18, 10**14)
