"""Verbs to find and repeat jobs: files, tags, sweeps."""
