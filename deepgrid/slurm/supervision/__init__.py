"""The continuous work of a supervisor on a cluster: leadership, polling, verdicts on claims, accounting.

`leader.Leader` elects one supervisor per provider. `monitor.SlurmMonitor` polls all claimed jobs with one query.
`queries.query_verdicts` does so once. `accounting.read_runs` reads what ran, for the books.
"""

from deepgrid.slurm.supervision.accounting import read_runs
from deepgrid.slurm.supervision.leader import Leader, LeaderSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.slurm.supervision.queries import query_verdicts

__all__ = ["Leader", "LeaderSettings", "SlurmMonitor", "query_verdicts", "read_runs"]
