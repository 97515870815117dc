"""Key files of the one-machine grid's parties: one file each under `<state>/keys`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ADMIN = "admin"  # deploys the contracts and mints credits
OPERATOR = "operator"  # assigns jobs, approves providers
CUSTOMER = "customer"


@dataclass(frozen=True)
class KeyRing:
    """The key files in `folder`, by the name of the party. A provider has the name of its cluster."""

    folder: Path
    providers: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (ADMIN, OPERATOR, CUSTOMER, *self.providers)

    def file(self, name: str) -> Path:
        return self.folder / name
