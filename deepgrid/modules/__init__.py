"""Modules that a workflow uses: fetched, filled in and checked on the customer's machine, before a job is submitted."""

from deepgrid.modules.limits import ModuleLimits
from deepgrid.modules.resolving import load, resolve

__all__ = ["ModuleLimits", "load", "resolve"]
