"""The public pages, their states, and the text of each state."""

from __future__ import annotations

UNKNOWN_CLUSTER = "0x" + "12" * 20
UNREADABLE = "No connection."
SHOWN = {
    "market": {
        "loading": "The market is still being read", "empty": "No cluster has joined this grid yet.",
        "error": "cannot be read now", "filled": "2 of 2 clusters; 2 can run this job.",
    },
    "cluster": {
        "loading": "The cluster is still being read", "empty": "No cluster of this grid has this address.",
        "error": "cannot be read now", "filled": "infiniband",
    },
    "grid": {
        "loading": "The grid's state is still being read", "empty": "No job was ever requested on this chain.",
        "error": "cannot be read now", "filled": "Jobs by state",
    },
}  # fmt: skip
STATES = ("loading", "empty", "error", "filled")


def pages_of(friend: str) -> dict[str, str]:
    """Return the name of each public page, and its fragment."""
    return {
        "market": "/",
        "cluster": f"/clusters/{friend}",
        "stranger": f"/clusters/{UNKNOWN_CLUSTER}",
        "grid": "/grid",
    }
