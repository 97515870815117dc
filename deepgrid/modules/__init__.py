"""Modules of a workflow. They are fetched, filled in and checked on the customer's machine before submission.

For clients that cannot do so, the services do it, within a `Reach` of their own.
"""

from deepgrid.modules.reach import ModuleLimits, Unavailable
from deepgrid.modules.resolving import load, resolve

__all__ = ["ModuleLimits", "Unavailable", "load", "resolve"]
