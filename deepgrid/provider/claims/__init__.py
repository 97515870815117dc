"""Drives one claim at a provider, from its first step to settlement: a carrier observes, decides and acts."""
