"""Three machines on one network, with the environment of a new grid."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.machines.machine import CHECKOUT, Machine, machine, make_base, missing_tools, network
from tests.machines.world import SERVICES, World, world
from tests.slurm.people import remove_accounts
from tests.slurm.support import open_folder


@dataclass(frozen=True)
class Machines:
    """`hosts` are the addresses that each machine knows by name."""

    world: World
    hosts: dict[str, str]
    operator: Machine
    provider: Machine
    customer: Machine


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """Machines with only packages and the checkout. Skips the tests if no machine can be made."""
    if os.getuid() != 0:
        pytest.skip("only root can boot machines")
    if missing := missing_tools():
        pytest.skip(f"machines need {', '.join(missing)}: install debootstrap, systemd-container and iproute2")
    make_base()
    with open_folder() as folder, ExitStack() as undo:
        here = undo.enter_context(network())
        around = undo.enter_context(world(folder, here))
        undo.callback(remove_accounts, folder)
        hosts = {SERVICES: here.address(1)}
        booted = [
            undo.enter_context(machine(name, number, here, hosts, folder))
            for number, name in enumerate(("operator", "provider", "customer"), 1)
        ]
        for one in booted:
            one.run(f"ln -s {CHECKOUT} /opt/deepgrid")
        yield Machines(around, hosts, *booted)
