"""What Slurm's answers mean. Pure: text in, values out.

`commands` builds argument lists and parses outputs, `exit_codes` reads exit codes. `snapshot` joins queue and spool of
one moment, `run_records` separates runs from refused starts, `holdings` maps jobs to claims, and `verdict` decides the
state of a claim.
"""

from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.observe.holdings import Holdings, Ledger
from deepgrid.slurm.observe.snapshot import Snapshot
from deepgrid.slurm.observe.verdict import Verdicts, VerdictSettings

__all__ = ["Holdings", "Ledger", "Row", "Snapshot", "VerdictSettings", "Verdicts"]
