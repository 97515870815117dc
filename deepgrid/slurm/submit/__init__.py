"""Side effects on a cluster, each at most once: submission, the supervisor's batch jobs, removal of leftovers.

`protocol` guarantees one submission per claim. `batch.BatchJobs` runs one job per name, `folders.Leftovers` finds and
removes folders of old claims.
"""
