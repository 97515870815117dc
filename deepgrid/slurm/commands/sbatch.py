"""`sbatch`: the options of a submission. The scripts on the login node run it and read its answer (`account.sh`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sbatch:
    """A submission of the script on standard input. It answers the id of the job."""

    name: str
    partition: str
    options: Sequence[str] = ()

    def argv(self) -> list[str]:
        """Return the command line."""
        fixed = ["sbatch", "--parsable", "--no-requeue", "--ignore-pbs", "--open-mode=append"]
        return [*fixed, f"--job-name={self.name}", f"--partition={self.partition}", *self.options]
