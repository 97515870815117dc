"""The side effects of flows: one retried Prefect task each.

A task retries transient errors and fails at once on all others. Where a task only calls a step of a role, it is
declared around that function, whose name and docstring Prefect shows.
"""
