"""Notes of a deployment that is not done yet, so that another run goes on where it stopped.

Before a contract is created, the number of that transaction is noted, which fixes the contract's address: whether
the transaction arrived is then asked of the chain. Without a file the notes live as long as the process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from deepgrid.chain.node.durable import write_json
from deepgrid.errors import ConfigurationError


class Creation(BaseModel):
    """A contract about to be created: hash of what is sent, and where it will stand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hash: str
    address: str


class Notes(BaseModel):
    """What is noted: whose deployment on which chain, the block before which nothing was, and each contract."""

    model_config = ConfigDict(extra="forbid")

    chain_id: int
    deployer: str
    first_block: int = 0
    contracts: dict[str, Creation] = {}


class Draft:
    """The notes, and the file that keeps them."""

    def __init__(self, file: Path | None, notes: Notes) -> None:
        self._file = file
        self.notes = notes

    @classmethod
    def open(cls, file: Path | None, chain_id: int, deployer: str) -> Self:
        """The notes in `file`, or new ones.

        Raises ConfigurationError when they are of another chain or key: those contracts belong to that key.
        """
        standing = _read(file) if file is not None else None
        if standing is None:
            return cls(file, Notes(chain_id=chain_id, deployer=deployer))
        if (standing.chain_id, standing.deployer) != (chain_id, deployer):
            raise ConfigurationError(
                f"{file} notes a deployment on chain {standing.chain_id} by {standing.deployer} that is not finished.",
                next_step="Go on with that chain and key, or remove the file to give it up.",
            )
        return cls(file, standing)

    def begin(self, first_block: int) -> None:
        """Forget everything: nothing is older than `first_block`."""
        self.notes.first_block = first_block
        self.notes.contracts = {}

    def note(self, contract: str, creation: Creation) -> None:
        """Note, before it is sent, where a contract will stand."""
        self.notes.contracts[contract] = creation
        if self._file is not None:
            write_json(self._file, self.notes.model_dump())


def _read(file: Path) -> Notes | None:
    try:
        return Notes.model_validate(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError):
        raise ConfigurationError(
            f"{file} should hold the notes of a deployment and cannot be read.", next_step="Move it away."
        ) from None
