"""A claim and its job's rows, for tests of pure functions."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.commands.job_row import Row

KEY = JobKey(31337, "0x" + "ab" * 20, 5, 1000)
OURS = Row(42, "999", "COMPLETED", 100, 160)
RECORDED = replace(OURS, name=KEY.name, comment=KEY.comment)
