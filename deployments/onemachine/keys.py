"""Keys of the one-machine grid's people: a file each under `<state>/keys`, made once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.wallet import Wallet

ADMIN = "admin"  # deploys the contracts and mints credits
OPERATOR = "operator"  # assigns jobs, approves providers
CUSTOMER = "customer"


@dataclass(frozen=True)
class KeyRing:
    """The keys in `folder`, by the name of whom they belong to."""

    folder: Path

    def make(self, names: Iterable[str]) -> None:
        """Make the keys that are missing."""
        for name in names:
            if not self.file(name).exists():
                Wallet.create(self.file(name))

    def file(self, name: str) -> Path:
        return self.folder / name

    def wallet(self, name: str) -> Wallet:
        return Wallet.load(self.file(name))
