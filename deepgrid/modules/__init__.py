"""Modules of a workflow. They are fetched, filled in and checked on the customer's machine before submission."""

from deepgrid.modules.limits import ModuleLimits
from deepgrid.modules.resolving import load, resolve

__all__ = ["ModuleLimits", "load", "resolve"]
