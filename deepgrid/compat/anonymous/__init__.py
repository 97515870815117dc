"""Definitions without a signature, for clients that submit by GraphQL.

`store_anonymous` stores one for no owner. The customer of the first job that names it becomes its owner for ever, and
from then on it is like a signed upload. `resolve_uses` fetches the modules of a job for such clients.
"""

from deepgrid.compat.anonymous.unowned import resolve_uses, store_anonymous

__all__ = ["resolve_uses", "store_anonymous"]
