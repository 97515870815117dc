"""Builds and runs the TypeScript client of the folder `typescript`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "typescript"
COMPILER = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
WITHIN_S = 1500

# The checks that the client makes on a running grid, in the order of their start.
CHECKS = (
    "chain id", "watchers start", "allowance", "balance and transfer", "too few credits is a sentence",
    "legacy transaction with 20 million gas", "events from block 0", "submit", "logs over gRPC to the end",
    "logs over gRPC-web text to the end", "top up and cancel", "health", "submit of every example",
    "null in each optional field", "an invalid job is refused with a sentence", "one error per fault",
    "unknown, missing and wrong fields are refused", "validate of a module", "the script of a job is not for everyone",
    "a request without operationName", "browsers of any site may ask", "every example is a job on chain",
    "the job finishes", "six watchers", "refusals on chain are sentences", "signatures over gRPC",
    "signatures over gRPC-web text", "a stranger's fetchLogs is UNAUTHENTICATED", "logs again after the end",
    "gRPC-web text as browsers send it", "gRPC-web binary", "list of logs", "health of the log service",
    "browsers of any site may follow",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """The end of one check. `error` is None if it passed."""

    check: str
    ok: bool
    seconds: float
    error: str | None


def build(*, check_types: bool = True) -> None:
    """Compile the client."""
    done = subprocess.run(
        ["node", str(COMPILER), "-p", str(FOLDER), *([] if check_types else ["--noCheck"])],
        capture_output=True, text=True, timeout=WITHIN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def run(settings: dict[str, Any], file: Path) -> dict[str, Result]:
    """Run all checks on a grid. `settings` is written to `file`; harness.ts describes it."""
    file.write_text(json.dumps(settings))
    done = subprocess.run(
        ["node", str(FOLDER / "build" / "main.js"), str(file)], capture_output=True, text=True, timeout=WITHIN_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = [Result(**json.loads(line)) for line in done.stdout.splitlines()]
    print(*(f"{one.seconds:6.1f} s  {one.check}" for one in found), sep="\n")
    return {one.check: one for one in found}
