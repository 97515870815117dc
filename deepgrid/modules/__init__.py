"""Modules of a workflow. They are fetched, filled in and checked on the customer's machine before submission."""

from deepgrid.modules.resolving import load, resolve
from deepgrid.modules.sandbox_limits import ModuleLimits

__all__ = ["ModuleLimits", "load", "resolve"]
