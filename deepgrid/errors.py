"""The errors that deepgrid raises on purpose.

Each error has one sentence for the reader, says whether a retry may help (`transient`), and what to
do next. Sentences may quote text from other parties and go to terminals and logs, so control
characters are removed.
"""

from __future__ import annotations

from deepgrid.plain_text import plain

LINES = "\n\t"


class GridError(Exception):
    """Base of all errors of the grid.

    `transient` says whether the same call may succeed later without a change. `next_step` is one
    imperative sentence, or empty.
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
    """The user's input is wrong: a file, a field, an option, a key."""


class ConfigurationError(GridError):
    """The address book, a block, a key file or the environment is not usable."""


class ChainError(GridError):
    """The node cannot be reached, or its answer is malformed. Transient by default."""

    transient = True


class ContractError(GridError):
    """A contract refused a call. `name` and `args_by_name` are from its custom error."""

    def __init__(
        self, message: str, *, name: str = "", args_by_name: dict[str, object] | None = None, next_step: str = ""
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.name = name
        self.args_by_name = args_by_name or {}


class SlurmError(GridError):
    """A Slurm command failed permanently: `sbatch` refused the job, or a partition is unknown."""


class SlurmUnreachable(SlurmError):
    """The login node or slurmctld did not answer. This says nothing about any job."""

    transient = True


class SubmitLimit(SlurmUnreachable):
    """The account has as many jobs in Slurm as it may submit. `limit` is Slurm's message about it."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message, next_step="Wait until one of its jobs ends, or raise the limit.")
        self.limit = limit


class Deposed(GridError):
    """Another supervisor leads the provider now. This one must release its jobs."""


class ServiceError(GridError):
    """A grid service cannot be reached, or failed. Transient, unless it refused the request.

    `asked_pause_s` are the seconds to wait before the same request, if a busy service named them.
    """

    transient = True
    asked_pause_s: float | None = None


class AccessDenied(ServiceError):
    """A grid service refused access: wrong signer, expired or replayed request, or a job of another party."""

    transient = False


class NotFound(GridError):
    """The requested job, provider, definition or log does not exist."""
