"""Logging of the verbs that serve: one line per event on standard error."""

from __future__ import annotations

import logging

CHATTY = ("httpx", "httpcore", "paramiko", "uvicorn.access", "aiosqlite")


def start_logging() -> None:
    """Configure logging, with only warnings of chatty libraries."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
