"""Addresses of a grid's contracts, and the roles of accounts at them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roles:
    """Addresses that may assign jobs, panic them, and approve providers.

    The contracts have one role for assigning and panicking: an account that may do one may do the other.
    """

    assign: tuple[str, ...] = ()
    panic: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()

    @classmethod
    def all_of(cls, operator: str) -> Roles:
        """All three for one address."""
        return cls((operator,), (operator,), (operator,))


@dataclass(frozen=True, slots=True)
class Deployment:
    """Addresses of a grid's contracts: the chain's part of an address book. `sent` counts transactions."""

    chain_id: int
    credit: str
    provider_manager: str
    meta_scheduler: str
    first_block: int
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that an account must have, and its `meaning` as a sentence for the operator."""

    contract: str
    address: str
    role: str
    account: str
    meaning: str


def grants(grid: Deployment, roles: Roles) -> list[Grant]:
    """The grants of a grid: the contracts' own, and those of `roles`."""
    scheduler, manager = ("MetaScheduler", grid.meta_scheduler), ("ProviderManager", grid.provider_manager)
    role = "METASCHEDULER_ROLE"
    linked = "MetaScheduler and ProviderManager work together"
    wiring = Grant(*manager, "METASCHEDULER_CONTRACT_ROLE", grid.meta_scheduler, linked)
    who = dict.fromkeys((*roles.assign, *roles.panic))  # each once, in order
    assigning = [Grant(*scheduler, role, account, f"{account} assigns and panics jobs") for account in who]
    approving = [
        Grant(*manager, role, account, f"{account} approves providers") for account in dict.fromkeys(roles.approve)
    ]
    return [wiring, *assigning, *approving]
