"""Parameter sweeps: `map` requests one job per parameter set, a limited number at a time.

A plan turns parameter sets into orders whose hashes follow from the sweep's key. The sweep looks on chain for those
that exist, requests the others as places become free, and waits for the ends.
"""

from deepgrid.client.sweep.driver import Sweep, SweepLimits
from deepgrid.client.sweep.plan import Entry, OrderTerms, Parameters, Plan
from deepgrid.client.sweep.starting import start_sweep
from deepgrid.client.sweep.summary import Summary, Unsubmitted, summary_of

__all__ = [
    "Entry", "OrderTerms", "Parameters", "Plan", "Summary", "Sweep", "SweepLimits", "Unsubmitted", "start_sweep",
    "summary_of",
]  # fmt: skip
