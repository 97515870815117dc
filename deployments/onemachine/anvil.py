"""The grid's own chain: anvil with one block a second and its state in a file."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deployments.onemachine.probes import HOST, answers_rpc
from deployments.onemachine.processes import Daemon

CHAIN_ID = 179188
BLOCK_TIME_S = 1
# What a kill -9 may cost. The whole state is written each time, and grows by some 5 MB an hour.
STATES_KEPT = 16  # readers ask for the state of a block that they have just seen, and a block a second follows it
STATE_INTERVAL_S = 5


@dataclass(frozen=True)
class Anvil:
    """The chain with its state in `folder`; `prepare` before `daemon` is started, `keep` once it is worth keeping."""

    folder: Path
    port: int

    def prepare(self) -> str:
        """See to a state file that anvil can load; returns a note for the person when the chain goes back, else "".

        anvil rewrites the file in place, so that a kill -9 in that moment leaves half of it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._state.exists() or _is_whole(self._state):
            return ""
        self._state.unlink()
        if not self._kept.exists():
            return "The chain's state was cut off by a crash: the chain begins anew."
        shutil.copy(self._kept, self._state)
        return "The chain's state was cut off by a crash: the chain goes back to the grid's last start."

    def daemon(self) -> Daemon:
        """The node's process; it has no accounts and keeps the newest states only."""
        argv = [
            _binary(), "--host", HOST, "--port", str(self.port), "--chain-id", str(CHAIN_ID), "--accounts", "0",
            "--block-time", str(BLOCK_TIME_S), "--hardfork", "cancun", "--prune-history", str(STATES_KEPT), "--quiet",
            "--state", str(self._state), "--state-interval", str(STATE_INTERVAL_S),
        ]  # fmt: skip
        return Daemon("anvil", argv, ready=lambda: answers_rpc(self.port, "eth_chainId"), cwd=str(self.folder))

    def keep(self) -> None:
        """Copy the state file to fall back to, if it is whole at this moment."""
        if self._state.exists():
            draft = self._kept.with_suffix(".draft")
            shutil.copy(self._state, draft)
            if _is_whole(draft):
                draft.rename(self._kept)

    @property
    def rpc_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://{HOST}:{self.port}"

    @property
    def _state(self) -> Path:
        return self.folder / "state.json"

    @property
    def _kept(self) -> Path:
        return self.folder / "kept.json"


def _is_whole(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except ValueError:
        return False
    return True


def _binary() -> str:
    """anvil as npm installed it for this machine's processor."""
    packages = Path(str(files("contracts"))) / "node_modules" / "@foundry-rs"
    for found in packages.glob("anvil-*/bin/anvil"):
        return str(found)
    raise ConfigurationError("anvil is not installed.", next_step="Run `./run setup`.")
