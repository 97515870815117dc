"""A client of the contracts, and its accounts."""

from __future__ import annotations

from dataclasses import dataclass

from tests.chain.anvil import Anvil
from tests.contracts.client import Client

CREDIT = 10**18


@dataclass(frozen=True)
class Scene:
    """A client and its accounts: the operator (also admin and minter), two providers, a customer with credits."""

    client: Client
    anvil: Anvil
    operator: str
    provider: str
    rival: str
    customer: str
