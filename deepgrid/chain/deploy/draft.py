"""The progress of an unfinished deployment, so that another run continues where it stopped.

Before a contract is created, its future address is recorded, which follows from the nonce of the transaction. The
chain then shows whether the transaction arrived. Without a file the draft lives as long as the process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import write_json


class Creation(BaseModel):
    """A contract before its creation: hash of the sent data, and the future address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hash: str
    address: str


class Notes(BaseModel):
    """The recorded progress: chain, deployer, first block with a contract, and each contract."""

    model_config = ConfigDict(extra="forbid")

    chain_id: int
    deployer: str
    first_block: int = 0
    contracts: dict[str, Creation] = {}


class Draft:
    """The recorded progress and its file."""

    def __init__(self, file: Path | None, notes: Notes) -> None:
        self._file = file
        self.notes = notes

    @classmethod
    def open(cls, file: Path | None, chain_id: int, deployer: str) -> Self:
        """Return the draft in `file`, or a new one.

        Raises ConfigurationError if it belongs to another chain or key: its contracts belong to that key.
        """
        standing = _read(file) if file is not None else None
        if standing is None:
            return cls(file, Notes(chain_id=chain_id, deployer=deployer))
        if (standing.chain_id, standing.deployer) != (chain_id, deployer):
            raise ConfigurationError(
                f"{file} holds an unfinished deployment on chain {standing.chain_id} by {standing.deployer}.",
                next_step="Continue with that chain and key, or remove the file to abandon it.",
            )
        return cls(file, standing)

    def begin(self, first_block: int) -> None:
        """Start again: no contract is older than `first_block`."""
        self.notes.first_block = first_block
        self.notes.contracts = {}

    def note(self, contract: str, creation: Creation) -> None:
        """Record the future address of a contract, before its transaction is sent."""
        self.notes.contracts[contract] = creation
        if self._file is not None:
            write_json(self._file, self.notes.model_dump())


def _read(file: Path) -> Notes | None:
    try:
        return Notes.model_validate(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError):
        raise ConfigurationError(f"The deployment draft {file} cannot be read.", next_step="Move it away.") from None
