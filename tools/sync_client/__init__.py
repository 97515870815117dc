"""Generates the sync classes of the Python client from the async ones."""
