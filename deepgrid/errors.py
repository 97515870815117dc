"""Every error that deepgrid raises on purpose.

Each carries one sentence for the person who reads it, whether trying again may help
(`transient`), and what to do next. Nothing else may cross the command line's border.
Sentences may quote what strangers wrote, and go to terminals and logs: they hold no control characters.
"""

from __future__ import annotations

from deepgrid.plain_text import plain

LINES = "\n\t"


class GridError(Exception):
    """Base of all errors of the grid.

    `transient` says whether the same call may succeed later with nothing changed;
    `next_step` is one imperative sentence, or empty.
    """

    transient = False

    def __init__(self, message: str, *, next_step: str = "", transient: bool | None = None) -> None:
        self.message = plain(message, keep=LINES)
        self.next_step = plain(next_step, keep=LINES)
        super().__init__(self.message)
        if transient is not None:
            self.transient = transient

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class InputError(GridError):
    """What the user gave is wrong: a file, a field, an option, a key."""


class ConfigurationError(GridError):
    """The address book, a block, a key file or the environment is not usable."""


class ChainError(GridError):
    """The node cannot be reached or answered nonsense; transient unless said otherwise."""

    transient = True


class ContractError(GridError):
    """A contract refused a call. `name` and `args_by_name` are those of its custom error."""

    def __init__(
        self, message: str, *, name: str = "", args_by_name: dict[str, object] | None = None, next_step: str = ""
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.name = name
        self.args_by_name = args_by_name or {}


class SlurmError(GridError):
    """A Slurm command failed for good (`sbatch` refused the job, a partition is unknown)."""


class SlurmUnreachable(SlurmError):
    """The login node or slurmctld did not answer; nothing may be concluded from it."""

    transient = True


class Deposed(GridError):
    """Another supervisor leads the provider by now; what this one carries it is to let go of."""


class ServiceError(GridError):
    """A grid service cannot be reached, or failed; transient unless it refused."""

    transient = True


class AccessDenied(ServiceError):
    """A grid service refused: wrong signer, expired or replayed request, job not released to the asker."""

    transient = False


class NotFound(GridError):
    """The job, provider, definition or log that was asked for does not exist."""
