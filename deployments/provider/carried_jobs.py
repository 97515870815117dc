"""Claims that were carried without their run, kept on this machine until the run is told how that ended.

A claim that ends while Prefect is away may never have had a run, and leaves nothing on chain that asks for one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import RootModel, ValidationError

from deepgrid.chain.node.durable import write_json
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.zombies import key_of_comment

logger = logging.getLogger(__name__)


class CarriedJobs:
    """A set of claims in a file, of the grid of the claim `like`; when it cannot be written, a restart forgets them."""

    def __init__(self, file: Path, like: JobKey) -> None:
        self._file = file
        self._keys = {key for comment in _read(file) if (key := key_of_comment(comment, like))}

    def __iter__(self) -> Iterator[JobKey]:
        return iter(self._keys)

    def add(self, keys: Iterable[JobKey]) -> None:
        """Keep these too."""
        self._become(self._keys.union(keys))

    def discard(self, keys: Iterable[JobKey]) -> None:
        """Forget these: their runs know, or will."""
        self._become(self._keys.difference(keys))

    def _become(self, keys: set[JobKey]) -> None:
        if keys == self._keys:
            return
        self._keys = keys
        try:
            write_json(self._file, sorted(key.comment for key in keys))
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._file, error.strerror)


def _read(file: Path) -> list[str]:
    try:
        return RootModel[list[str]].model_validate_json(file.read_bytes()).root
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        logger.warning("%s does not hold claims: %s", file, error)
        return []
