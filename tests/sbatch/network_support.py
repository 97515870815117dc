"""Checks of workflows in the sandbox of networks, and a stand-in for bore."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deepgrid.workflow import Definition
from tests.sbatch.sandbox import NO_TUN, UNAVAILABLE, Sandbox, has_tun


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.remove()


def does(
    sandbox: Sandbox, made: Definition, status: int, says: list[str], *, prepare: str = "", meanwhile: str = ""
) -> bool:
    """Check exit status and output.

    On a machine without /dev/net/tun check the error of the script instead, and return False.
    """
    if not has_tun():
        outcome = sandbox.run(made, hide_tun=True)
        assert (outcome.status, outcome.output.splitlines()[-1]) == (UNAVAILABLE, NO_TUN)
        return False
    outcome = sandbox.run(made, prepare=prepare, meanwhile=meanwhile)
    assert (outcome.status, outcome.output.splitlines()) == (status, says)
    return True


BORE = """#!/bin/bash
# Stands in for bore: records its calls, and exits the first time.
printf '%s|' "${{BORE_SECRET-none}}" "$@" >>{root}/bore
echo >>{root}/bore
[[ $(wc -l <{root}/bore) == 1 ]] || exec sleep 1000
"""


def with_bore(sandbox: Sandbox) -> None:
    program = sandbox.root / "bin" / "bore"
    program.write_text(BORE.format(root=sandbox.root))
    program.chmod(0o755)
    (sandbox.root / "bore").write_text("")
    (sandbox.root / "bore").chmod(0o666)
