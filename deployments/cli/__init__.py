"""Verbs of `dps` that need Prefect; the library finds them through the entry points of the project."""
