"""Readers of logs that wait for output. All followers of one log share one reader of the database.

`LogTails.follow` yields a log's pieces as they arrive, and `LogTails.counted` bounds the number of followers. `LogTail`
is the shared reader of one followed log.
"""

from deepgrid.services.following.log_tail import LOOK_AGAIN_S, LogTail, require_customer
from deepgrid.services.following.log_tails import LogTails
from deepgrid.services.following.stored import LATE_OUTPUT_S, Piece

__all__ = ["LATE_OUTPUT_S", "LOOK_AGAIN_S", "LogTail", "LogTails", "Piece", "require_customer"]
