"""Textual is loaded by the terminal app only. (A contract of import-linter keeps it; `dps --help` is in tests/cli.)"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.client.stage import Customer


@pytest.mark.long
async def test_a_verb_that_lists_jobs_does_not_load_textual(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPGRID_BOOK", str(customer.book))
    monkeypatch.setenv("DPS_KEY_FILE", str(customer.key))
    program = (
        "import sys\nfrom deepgrid.cli.main import app\n"
        "try: app(['job', 'list'])\nexcept SystemExit as end: print(end.code, 'textual' in sys.modules)"
    )
    run = asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True)
    done = await run
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr
