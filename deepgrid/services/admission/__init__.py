"""Admission control of the services: connections, requests, chain calls, memory and checks of scripts.

No request of an unknown party costs the services more than the bounds in `Limits`. A party that exhausts its
share limits only itself.
"""

from deepgrid.services.admission.checks import ScriptChecks
from deepgrid.services.admission.connections import Connections, GuardedProtocol, Proxies, allow_more_files
from deepgrid.services.admission.gate import Admission, Gate
from deepgrid.services.admission.limits import Limits, Rate
from deepgrid.services.admission.unsigned import AnonymousAdmission, AnonymousSettings

__all__ = [
    "Admission", "AnonymousAdmission", "AnonymousSettings", "Connections", "Gate", "GuardedProtocol", "Limits",
    "Proxies", "Rate", "ScriptChecks", "allow_more_files",
]  # fmt: skip
