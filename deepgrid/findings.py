"""Findings of the doctors of all roles: one sentence about one subject, and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deepgrid.errors import GridError


class Level(Enum):
    """The state of a subject: it works, it works with a loss, or it keeps the role from working."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one subject. `next_step` is empty when there is nothing to do."""

    subject: str
    level: Level
    words: str
    next_step: str = ""

    @property
    def complaint(self) -> str:
        """The fault and the next step; empty if the subject works."""
        return "" if self.level is Level.GOOD else f"{self.words} {self.next_step}".strip()

    @classmethod
    def of(cls, subject: str, error: GridError) -> Finding:
        """Return the finding for a subject that could not be checked, or that is broken."""
        return cls(subject, Level.BAD, error.message, error.next_step)
