"""Attacks against the real components. Each test attacks, and asserts what the attacker gains at most."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.attacks.cleaning import by_sudo as by_sudo
from tests.attacks.cleaning import customers as customers
from tests.attacks.cleaning import either as either
from tests.attacks.cleaning import precious as precious
from tests.attacks.cleaning import storage as storage
from tests.attacks.on_slurm import bobs as bobs
from tests.attacks.on_slurm import running as running
from tests.attacks.on_slurm import site as site
from tests.attacks.on_slurm import waiting as waiting
from tests.attacks.report import PROPERTY, attack_of
from tests.sbatch.bucket import bucket, s3_server
from tests.sbatch.store import store
from tests.services.conftest import grid, start
from tests.slurm.conftest import box, cluster, key, login, monitor, state_folder

__all__ = [
    "box", "bucket", "cluster", "grid", "key", "login", "monitor", "s3_server", "start", "state_folder", "store",
]  # fmt: skip


@pytest.fixture(autouse=True)
def attack_row(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Record the attack's row for the table at the end."""
    if row := attack_of(request.node):
        record_property(PROPERTY, row.to_report())
