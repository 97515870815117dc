"""A development chain for tests: a real anvil on a free port, removed with its files."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

import contracts

BINARY = Path(contracts.__file__).parent / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
START_WITHIN_S = 30.0
GAS_MONEY_WEI = 10**21
NO_TLS = False  # loopback over plain HTTP: avoids reading all certificates at each call


class Anvil:
    """Mines each transaction at once; with `idle` only on request. `keep_state` survives a kill."""

    def __init__(self, folder: Path, *, idle: bool = False, keep_state: bool = False) -> None:
        self._log = folder / "anvil.log"
        self._options = ["--accounts", "1", "--hardfork", "cancun", "--threads", "1"]
        if idle:
            self._options += ["--no-mining"]
        if keep_state:
            self._options += ["--state", str(folder / "state.json"), "--state-interval", "1"]
        else:
            self._options += ["--prune-history", "300"]
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start on the same port as before a stop. Returns when the node answers."""
        argv = [str(BINARY), *self._options, "--port", str(self.port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_WITHIN_S
        while (found := re.search(rb"Listening on 127\.0\.0\.1:(\d+)", self._log.read_bytes())) is None:
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            assert time.monotonic() < deadline, "anvil does not start"
            time.sleep(0.02)
        self.port = int(found[1])

    def stop(self) -> None:
        """Stop cleanly, with the state written."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_WITHIN_S)
            self._process = None

    def kill(self) -> None:
        """Stop the node as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_WITHIN_S)
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def call(self, method: str, *params: Any) -> Any:
        """Send one request without the code under test."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        answer = httpx.post(self.url, json=body, timeout=30, trust_env=False, verify=NO_TLS).json()
        assert "error" not in answer, answer
        return answer["result"]

    def cpu_seconds(self) -> float:
        """Return the CPU time that the node has used since its start."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # in user and system mode

    def fund(self, address: str) -> None:
        """Give an account money for gas."""
        self.call("anvil_setBalance", address, hex(GAS_MONEY_WEI))

    def mine_every_second(self) -> None:
        """Mine every second instead of with each transaction, even after a restart."""
        self.call("evm_setAutomine", False)
        self.call("evm_setIntervalMining", 1)
        self._options += ["--block-time", "1"]

    def mine(self, blocks: int = 1) -> None:
        """Mine blocks with the waiting transactions."""
        self.call("anvil_mine", hex(blocks))

    def pass_time(self, seconds: int) -> None:
        """Move the chain's clock ahead, and mine a block."""
        self.call("evm_increaseTime", seconds)
        self.call("evm_mine")
