"""A set of claims in a file on this machine, which survives a restart of the supervisor.

It is for work that outlasts a claim, such as the rest of its log: no open job on chain points to the claim any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import RootModel, ValidationError

from deepgrid.condition_log import ConditionLog
from deepgrid.files.private_files import write_json
from deepgrid.lifecycle.job import JobKey

logger = logging.getLogger(__name__)


class ClaimJournal:
    """A set of claims in a file, for the grid of the claim `like`. A restart loses them if the file is not writable."""

    def __init__(self, file: Path, like: JobKey) -> None:
        self._file = file
        self._keys = {key for comment in _read(file) if (key := like.of_same_grid(comment))}
        self._is_written = True
        self._unwritable = ConditionLog(logger, f"{file} cannot be written, a restart will lose its claims")

    def __iter__(self) -> Iterator[JobKey]:
        return iter(self._keys)

    def add(self, keys: Iterable[JobKey]) -> None:
        """Add claims to the journal."""
        self._replace(self._keys.union(keys))

    def discard(self, keys: Iterable[JobKey]) -> None:
        """Remove claims from the journal."""
        self._replace(self._keys.difference(keys))

    def hold(self, keys: Iterable[JobKey]) -> None:
        """Make the journal hold exactly these claims."""
        self._replace(set(keys))

    def _replace(self, keys: set[JobKey]) -> None:
        if keys == self._keys and self._is_written:
            return
        self._keys = keys
        try:
            write_json(self._file, sorted(key.comment for key in keys))
            self._is_written = True
            self._unwritable.end()
        except OSError as error:
            self._is_written = False  # a later call tries again, even with the same claims
            self._unwritable.note(error.strerror)


def _read(file: Path) -> list[str]:
    try:
        return RootModel[list[str]].model_validate_json(file.read_bytes()).root
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        logger.warning("%s does not hold claims, ignoring it: %s", file, error)
        return []
