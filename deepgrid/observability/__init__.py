"""Metrics and liveness of a supervisor."""
