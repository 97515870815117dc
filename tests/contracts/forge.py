"""Calls of forge by the tests of the contracts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CONTRACTS = Path(__file__).parents[2] / "contracts"
COMPILED = CONTRACTS.parent / "deepgrid" / "chain" / "compiled"


def places(builds: str) -> dict[str, str]:
    """Return the environment that sends forge's output to `out/BUILDS`, apart from builds with other settings."""
    return {**os.environ, "FOUNDRY_OUT": f"out/{builds}", "FOUNDRY_CACHE_PATH": f"cache/{builds}"}


def forge(*args: str, builds: str, profile: str = "default") -> str:
    """Return the output of `forge ARGS`. Raises AssertionError with forge's last lines if it fails."""
    command = ["nice", "node_modules/.bin/forge", *args]
    settings = places(builds) | {"FOUNDRY_PROFILE": profile}
    ran = subprocess.run(command, cwd=CONTRACTS, env=settings, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"forge {args[0]} failed:\n" + "\n".join((ran.stdout + ran.stderr).splitlines()[-20:])
    return ran.stdout
