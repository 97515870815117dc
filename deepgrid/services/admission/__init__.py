"""Admission control of the services: requests, signers, chain calls and checks of scripts.

The proxy limits connections, sizes, times and rates per source address (`deepgrid.services.edge`). What needs the
signature or the content of a request is limited here.

No request of an unknown party costs the services more than the bounds in `Limits`. A party that exhausts its
share limits only itself.
"""

from deepgrid.services.admission.checks import ScriptChecks
from deepgrid.services.admission.gate import Admission, Gate
from deepgrid.services.admission.limits import Limits, Rate

__all__ = ["Admission", "Gate", "Limits", "Rate", "ScriptChecks"]
