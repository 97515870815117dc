"""Slurm's words for the state of a node and its flags, and whether such a node can run a job.

A node has one state and any number of flags (`IDLE+CLOUD+POWERED_DOWN`). It is as usable as its worst word. A node that
Slurm starts does not respond yet, which does not count then. A word that is not in the table is not usable.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum


class Use(Enum):
    """Whether a node can run a job, from best to worst."""

    NOW = "usable now"
    ON_DEMAND = "usable on demand"
    NOT = "not usable"


NODE_WORDS: dict[str, tuple[Use, str]] = {
    "IDLE": (Use.NOW, "no job runs on it"),
    "MIXED": (Use.NOW, "jobs have some of its CPUs"),
    "ALLOCATED": (Use.NOW, "jobs have all its CPUs"),
    "COMPLETING": (Use.NOW, "a job on it is ending"),
    "PLANNED": (Use.NOW, "the backfill scheduler planned a job on it"),
    "BLOCKED": (Use.NOW, "a job with an exclusive topology blocks it"),
    "CLOUD": (Use.NOW, "a cloud node"),
    "DYNAMIC_NORM": (Use.NOW, "a node that registered itself"),
    "DYNAMIC_FUTURE": (Use.NOW, "a node that registered itself in place of a future one"),
    "REBOOT_REQUESTED": (Use.NOW, "it reboots when its jobs are over"),
    "REBOOT_CANCEL": (Use.NOW, "its reboot was called off"),
    "RESUME": (Use.NOW, "it is resumed"),
    "UNDRAIN": (Use.NOW, "it takes jobs again"),
    "POWERED_DOWN": (Use.ON_DEMAND, "it is off, and Slurm starts it for a job"),
    "POWERING_DOWN": (Use.ON_DEMAND, "it is being switched off"),
    "POWER_DOWN": (Use.ON_DEMAND, "Slurm is about to switch it off"),
    "POWERING_UP": (Use.ON_DEMAND, "it is being started"),
    "POWER_UP": (Use.ON_DEMAND, "Slurm is about to start it"),
    "REBOOT_ISSUED": (Use.ON_DEMAND, "it reboots"),
    "DRAIN": (Use.NOT, "drained: an administrator or a check took it out"),
    "DOWN": (Use.NOT, "down"),
    "FAIL": (Use.NOT, "failing: an administrator or a check marked it"),
    "ERROR": (Use.NOT, "in error"),
    "NOT_RESPONDING": (Use.NOT, "not responding"),
    "INVALID_REG": (Use.NOT, "its hardware is not what slurm.conf says"),
    "INVAL": (Use.NOT, "its hardware is not what slurm.conf says"),
    "MAINTENANCE": (Use.NOT, "in a reservation for maintenance"),
    "MAINT": (Use.NOT, "in a reservation for maintenance"),
    "RESERVED": (Use.NOT, "in a reservation of others"),
    "PERFCTRS": (Use.NOT, "its network counters are in use, which excludes other jobs"),
    "NPC": (Use.NOT, "its network counters are in use, which excludes other jobs"),
    "FUTURE": (Use.NOT, "defined for later"),
    "EXTERNAL": (Use.NOT, "not run by this Slurm"),
    "UNKNOWN": (Use.NOT, "unknown: it has not registered since the controller started"),
}
# Nodes with these words do not respond for a reason.
_STARTING = {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP", "REBOOT_ISSUED"}
_ORDER = list(Use)


def use_of(words: Collection[str]) -> Use:
    """Return whether a node with this state and these flags can run a job."""
    counted = _relevant_words(words)
    return max((_use(word) for word in counted), key=_ORDER.index, default=Use.NOT)


def why_not(words: Collection[str]) -> str:
    """Return why a node with this state and these flags cannot run a job."""
    said = [NODE_WORDS[word][1] if word in NODE_WORDS else f"in an unknown state ({word})" for word in _culprits(words)]
    return said[-1] if said else ""


def unknown_words(words: Collection[str]) -> set[str]:
    """Return the words that this table does not have."""
    return {word for word in words if word not in NODE_WORDS}


def _use(word: str) -> Use:
    return NODE_WORDS[word][0] if word in NODE_WORDS else Use.NOT


def _relevant_words(words: Collection[str]) -> list[str]:
    starts = not _STARTING.isdisjoint(words)
    return [word for word in words if not (starts and word == "NOT_RESPONDING")]


def _culprits(words: Collection[str]) -> list[str]:
    return [word for word in _relevant_words(words) if _use(word) is Use.NOT]
