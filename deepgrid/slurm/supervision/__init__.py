"""The continuous work of a supervisor on a cluster: leadership, polling, verdicts on claims, accounting.

`leader.Leader` elects one supervisor per provider. `monitor.SlurmMonitor` polls all claimed jobs with one query.
`monitor.query_verdicts` does so once. `accounting.read_runs` reads what ran, for the books.
"""
