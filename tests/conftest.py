"""What all tests share."""

from __future__ import annotations

import signal

# A shell starts its background jobs deaf to SIGINT, and children inherit that. Tests that interrupt
# a command must not depend on how they were started themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)
