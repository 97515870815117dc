"""Hardhat's node: another implementation of the chain than anvil."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

from tests.chain.anvil import GAS_MONEY_WEI, START_WITHIN_S, Anvil

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "node_modules/hardhat/internal/cli/bootstrap.js"


class Hardhat(Anvil):
    """Mines each transaction at once."""

    def start(self) -> None:
        """Start on a free port. Returns when the node answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        node = shutil.which("node")
        assert node is not None
        argv = [node, str(PROGRAM), "node", "--hostname", "127.0.0.1", "--port", str(self.port)]
        quiet = {"HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", "DO_NOT_TRACK": "1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                argv, cwd=FOLDER, env={**os.environ, **quiet}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_WITHIN_S
        while True:
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            assert time.monotonic() < deadline, "hardhat does not start"
            try:
                assert "Hardhat" in self.call("web3_clientVersion")
                return
            except httpx.TransportError:
                time.sleep(0.1)

    def stop(self) -> None:
        """Stop the node and its own processes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(START_WITHIN_S)
            self._process = None

    def fund(self, address: str) -> None:
        self.call("hardhat_setBalance", address, hex(GAS_MONEY_WEI))
