"""Textual is loaded by the terminal app only. (A contract of import-linter says so of imports.)"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.client.conftest import Customer


@pytest.mark.parametrize("arguments", [["--help"], ["job", "list"]], ids=" ".join)
async def test_other_commands_do_not_load_textual(
    customer: Customer, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPGRID_BOOK", str(customer.book))
    monkeypatch.setenv("DPS_KEY_FILE", str(customer.key))
    program = (
        "import sys\nfrom deepgrid.cli.main import app\n"
        f"try: app({arguments})\nexcept SystemExit as end: print(end.code, 'textual' in sys.modules)"
    )
    run = asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True)
    done = await run
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr
