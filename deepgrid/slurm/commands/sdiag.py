"""`sdiag`: what the controller has not yet told to accounting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from deepgrid.slurm.commands.query import COMMAND_PREFIX

_BACKLOG = re.compile(r"^DBD Agent queue size:\s*([0-9]{1,9})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sdiag:
    """The number of records that wait for accounting. After an outage of slurmdbd it falls to 0 within minutes."""

    program: ClassVar[str] = "sdiag"

    def argv(self) -> list[str]:
        """Return the command line."""
        return [*COMMAND_PREFIX, "sdiag"]

    @staticmethod
    def parse(text: str) -> int:
        """Return the number; 0 if the text does not say."""
        found = _BACKLOG.search(text)
        return int(found[1]) if found else 0
