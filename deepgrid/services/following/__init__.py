"""Readers of logs that wait for output. All followers of one log share one reader of the database.

`Hub.follow` yields a log's pieces as they arrive, and `Hub.counted` bounds the number of followers. `Feed` is the
shared reader of one followed log.
"""

from deepgrid.services.following.hub import Hub
from deepgrid.services.following.log_feed import LOOK_AGAIN_S, Feed, require_customer
from deepgrid.services.following.stored import LATE_OUTPUT_S, Piece

__all__ = ["LATE_OUTPUT_S", "LOOK_AGAIN_S", "Feed", "Hub", "Piece", "require_customer"]
