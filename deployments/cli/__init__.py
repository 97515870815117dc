"""Verbs of `dps` that need Prefect. The library finds them through the project's entry points."""
