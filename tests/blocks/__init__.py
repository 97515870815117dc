"""Blocks, as Prefect hands them out."""
