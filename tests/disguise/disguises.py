"""A site in disguise: one value for each way in which real sites differ, chosen by a seed. Pure.

Each value names what it does to the site. `disguise` combines them at random.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

VERSIONS = ("", "trixie", "sid")  # "" for the machine's own Slurm, otherwise a suite for tools/with-slurm
SHELLS = ("/bin/sh", "/bin/bash", "/bin/tcsh", "/bin/bsd-csh", "/bin/rbash")
ENVIRONMENTS = ("plain", "variables of Slurm", "Slurm on the profile's PATH", "Slurm where slurm_path says", "foreign")
MAX_SESSIONS = (10, 4, 2, 1)
NODES = ("all usable", "one drained", "one down", "one reserved")
WRAPPERS = ("none", "sbatch with a banner", "warnings on standard error", "slow commands")
NOISES = ("none", "a banner", "a complaint", "bytes without a line end", "a pause")
CLOCKS_S = (0, 120, -120, 3600, -2400)
RECORDS = ("hook and accounting", "accounting", "hook")
MEMORY = (True, False)

USUAL_SESSIONS = 9  # that a supervisor uses
OWNERS_SUSPEND = "sid"


@dataclass(frozen=True, slots=True)
class Disguise:
    """How a site differs from the one-machine grid's.

    `clock_s` is how far the clock of the whole site is ahead of the chain's and the supervisor's.
    `ends_greedy_jobs`: Slurm ends jobs that take too much memory.
    """

    version: str = ""
    login_shell: str = "/bin/sh"
    environment: str = "plain"
    max_sessions: int = 10
    nodes: str = "all usable"
    wrapper: str = "none"
    noise: str = "none"
    clock_s: int = 0
    records: str = "hook and accounting"
    ends_greedy_jobs: bool = True

    def __str__(self) -> str:
        """Return the disguise in one sentence."""
        memory = "ends greedy jobs" if self.ends_greedy_jobs else "lets greedy jobs run"
        return (
            f"Slurm of {self.version or 'this machine'} {memory}, records ends by {self.records}, and has nodes:"
            f" {self.nodes}; the login's shell is {self.login_shell}, its environment {self.environment}, its noise"
            f" {self.noise}, its wrapper {self.wrapper}; MaxSessions is {self.max_sessions}, and the site's clock is"
            f" {self.clock_s:+d} s off."
        )

    @property
    def has_accounting(self) -> bool:
        return "accounting" in self.records

    @property
    def has_hook(self) -> bool:
        return "hook" in self.records

    @property
    def faults(self) -> frozenset[str]:
        """The subjects of doctor's findings that this disguise causes."""
        found = {
            "suspension": self.version == OWNERS_SUSPEND,
            "sessions": self.max_sessions < USUAL_SESSIONS,
            "slurm": self.nodes != "all usable",
            "clock": self.clock_s != 0,
            "ends": not self.has_hook,
            "memory": not self.ends_greedy_jobs,
        }
        return frozenset(subject for subject, wrong in found.items() if wrong)


# The first value of each is the ordinary one.
DIMENSIONS: dict[str, Sequence[Any]] = {
    "version": VERSIONS,
    "login_shell": SHELLS,
    "environment": ENVIRONMENTS,
    "max_sessions": MAX_SESSIONS,
    "nodes": NODES,
    "wrapper": WRAPPERS,
    "noise": NOISES,
    "clock_s": CLOCKS_S,
    "records": RECORDS,
    "ends_greedy_jobs": MEMORY,
}
SEEDS = range(30)
CHOSEN = (0, 1, 2, 3)  # across them, only ordinary values are missing
_SALT = 1770  # makes that so


def disguise(seed: int) -> Disguise:
    """Return the disguise of a seed, which is the same on every machine.

    Each dimension deals its values like shuffled cards: all of them occur before one occurs again.
    """
    return Disguise(**{name: _dealt(seed, name, values) for name, values in DIMENSIONS.items()})


def _dealt(seed: int, name: str, values: Sequence[Any]) -> Any:
    deck, card = divmod(seed, len(values))
    return random.Random(f"{_SALT} {name} {deck}").sample(values, len(values))[card]


def uncovered(seeds: Sequence[int]) -> dict[str, set[object]]:
    """Return the values that none of these seeds has, by dimension."""
    drawn = [disguise(seed) for seed in seeds]
    missing = {name: set(values) - {getattr(one, name) for one in drawn} for name, values in DIMENSIONS.items()}
    return {name: values for name, values in missing.items() if values}
