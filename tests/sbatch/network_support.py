"""Checks of workflows in the sandbox of networks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deepgrid.workflow import Definition
from tests.sbatch.sandbox import NO_TUN, UNAVAILABLE, Sandbox, has_tun
from tests.sbatch.support import without_progress


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.remove()


def does(
    sandbox: Sandbox, made: Definition, status: int, says: list[str], *, prepare: str = "", meanwhile: str = ""
) -> bool:
    """Check exit status and output, except lines of progress.

    On a machine without /dev/net/tun check the error of the script instead, and return False.
    """
    if not has_tun():
        outcome = sandbox.run(made, hide_tun=True)
        assert (outcome.status, outcome.output.splitlines()[-1]) == (UNAVAILABLE, NO_TUN)
        return False
    outcome = sandbox.run(made, prepare=prepare, meanwhile=meanwhile)
    assert (outcome.status, without_progress(outcome.output)) == (status, says)
    return True
