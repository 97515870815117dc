"""How complete the log of a job is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogStatus:
    """How complete the log of a job is. Unlike lines in the log, which a job can print too, these figures are facts.

    Attributes:
        size: Bytes of the log that can be read now.
        left_out: Bytes of the output that are not in the log and will not be.
        pending: Bytes of the output that the cluster still has to deliver.
        final: Whether nothing will be added to the log.
        closed: Whether the cluster said that the log is complete but for what is left out.
    """

    size: int
    left_out: int = 0
    pending: int = 0
    final: bool = False
    closed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the log holds all that the job wrote."""
        return self.final and self.closed and not self.left_out

    @property
    def words(self) -> str:
        """The same as a sentence."""
        if self.is_whole:
            return f"The log is whole: {self.size:,} bytes."
        lacks = [f"{self.left_out:,} bytes are left out"] if self.left_out else []
        if not self.final:
            lacks.append(f"{self.pending:,} bytes are still to come" if self.pending else "more may come")
        elif not self.closed:
            count = f"the last {self.pending:,} bytes" if self.pending else "its end"
            lacks.append(f"its cluster did not deliver {count}")
        return f"The log is not whole: {', and '.join(lacks)}."
