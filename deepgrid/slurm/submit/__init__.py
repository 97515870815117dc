"""Side effects on a cluster, each at most once: submission, the supervisor's batch jobs, removal of leftovers.

`protocol` guarantees one submission per claim. `batch.BatchJobs` runs one job per name, `leftovers.Leftovers` finds and
removes folders of old claims.
"""

from deepgrid.slurm.submit.batch import BatchJobs, BatchSettings
from deepgrid.slurm.submit.leftovers import Leftover, Leftovers
from deepgrid.slurm.submit.protocol import Submission, SubmitRequest, Term

__all__ = ["BatchJobs", "BatchSettings", "Leftover", "Leftovers", "Submission", "SubmitRequest", "Term"]
