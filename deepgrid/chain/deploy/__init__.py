"""Deployment of the contracts and their roles.

It can run again at any time: it keeps what exists and does only what is missing.
"""
