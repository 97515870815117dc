"""Messages of Slurm's commands: their first line, and whether it means an outage."""

from __future__ import annotations

import re

# Error messages of an outage of Slurm, as an extended regular expression.
OUTAGE_MESSAGES = (
    "[Uu]nable to (contact|connect)|[Tt]imed out|[Tt]imeout|[Cc]onnection (refused|failure)|[Zz]ero [Bb]ytes|"
    "[Tt]ry again|[Tt]emporarily un|standby mode|[Cc]redential|[Tt]ransport endpoint|[Cc]ommunication|[Mm]unge|"
    "missing socket|[Mm]essage (receive|send|length)|[Cc]onnection reset|[Bb]roken pipe|[Nn]o route|[Nn]etwork is"
)


def first_complaint(text: str) -> str:
    """Return the first line of Slurm's message, without the command's name before it."""
    for line in text.splitlines():
        if bare := re.sub(r"^(\w+: )?((error|fatal): )?(allocation failure: )?", "", line.strip()):
            return bare
    return ""


def is_outage(complaint: str) -> bool:
    """Return whether this message means that Slurm is down. Otherwise Slurm refused the request."""
    return re.search(OUTAGE_MESSAGES, complaint) is not None
