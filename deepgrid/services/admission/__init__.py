"""Who may use how much of the services: connections, requests, chain calls, memory and checks of scripts.

Nothing that a stranger sends costs the services more than the bounds in `Limits`. What one party
uses up is missing to that party alone.
"""

from deepgrid.services.admission.checks import ScriptChecks
from deepgrid.services.admission.connections import Connections, GuardedProtocol, Proxies, allow_more_files
from deepgrid.services.admission.gate import Admission, Gate
from deepgrid.services.admission.limits import Limits, Rate

__all__ = [
    "Admission", "Connections", "Gate", "GuardedProtocol", "Limits", "Proxies", "Rate", "ScriptChecks",
    "allow_more_files",
]  # fmt: skip
