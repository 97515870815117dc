"""The grid's own chain: anvil with its state in a file, a miner, and a filter of methods.

A development node obeys every client, so anvil serves only a unix socket in a private folder. `node_filter` listens
on the RPC port, and `miner` asks for its blocks.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder
from deployments.onemachine.daemons.probes import HOST, answers_rpc
from deployments.onemachine.daemons.processes import Daemon, options
from deployments.onemachine.node.node_socket import NodeSocket, answers_on

CHAIN_ID = 179188
# Readers need the state of a block that they have just seen: this many blocks, and at least this many seconds, stay
# readable.
STATES_KEPT = 64
STATE_INTERVAL_S = 5  # a kill -9 may lose this much; anvil writes the whole state each time
# anvil requires a TCP port. On Linux a server can listen on a multicast address, to which no client can connect.
UNREACHABLE = "224.0.0.1"
ANY_PORT = 0
SOCKET = "node.ipc"


@dataclass(frozen=True)
class Anvil:
    """The chain with its state in `folder` and its filter on `port`.

    Call `prepare` before `daemon` starts. Call `keep` when the state is worth a backup.
    """

    folder: Path
    port: int

    def prepare(self) -> str:
        """Make sure that anvil can load the state file. Returns a note for the user if the chain goes back, otherwise
        "".

        anvil rewrites the file in place, so a kill -9 at that moment leaves half of it.
        """
        make_private_folder(self.folder)
        self.socket.unlink(missing_ok=True)  # anvil leaves a stale socket, and would refuse to replace it
        if not self._state.exists() or _is_whole(self._state):
            return ""
        self._state.unlink()
        if not self._kept.exists():
            return (
                "The chain's state was cut off by a crash: the chain starts from zero. New jobs get the numbers of old"
                " jobs, which the services keep. For a grid without them: ./run down, DEEPGRID_STATE=FOLDER ./run up."
            )
        shutil.copy(self._kept, self._state)
        return "The chain's state was cut off by a crash: the chain goes back to the grid's last start."

    def daemon(self) -> Daemon:
        """Return the node's process; it has no accounts, mines nothing by itself and keeps the newest states only."""
        argv = [_binary(), "--no-mining", "--quiet", *options(host=UNREACHABLE, port=ANY_PORT, ipc=SOCKET)]
        argv += options(chain_id=CHAIN_ID, hardfork="cancun", accounts=0, prune_history=STATES_KEPT)
        argv += options(state=self._state, state_interval=STATE_INTERVAL_S)
        return Daemon("anvil", argv, ready=lambda: answers_on(self.socket, "eth_chainId"), cwd=str(self.folder))

    def miner(self) -> Daemon:
        """Return the process that asks the node for its blocks. It needs the node only while it mines."""
        return Daemon(
            "miner", [sys.executable, "-m", "deployments.onemachine.node.miner", *options(socket=self.socket)]
        )

    def filter(self) -> Daemon:
        """Return the filter process. It is ready when the node answers through it."""
        argv = [sys.executable, "-m", "deployments.onemachine.node.node_filter"]
        argv += options(port=self.port, socket=self.socket)
        return Daemon("node-filter", argv, ready=lambda: answers_rpc(self.port, "eth_chainId"))

    def private(self) -> NodeSocket:
        """Return the node with all its methods, for the grid's own account."""
        return NodeSocket(self.socket)

    def keep(self) -> None:
        """Back up the state file, if it is complete now."""
        if self._state.exists():
            draft = self._kept.with_suffix(".draft")
            shutil.copy(self._state, draft)
            if _is_whole(draft):
                draft.rename(self._kept)

    @property
    def rpc_url(self) -> str:
        """Address of the filter."""
        return f"http://{HOST}:{self.port}"

    @property
    def ws_url(self) -> str:
        """Address of the filter for subscriptions."""
        return f"ws://{HOST}:{self.port}/ws"

    @property
    def socket(self) -> Path:
        """Socket on which the node serves every method."""
        return self.folder / SOCKET

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
    """Return the anvil binary that npm installed for this machine's CPU."""
    packages = Path(str(files("contracts"))) / "node_modules" / "@foundry-rs"
    for found in packages.glob("anvil-*/bin/anvil"):
        return str(found)
    raise ConfigurationError("anvil is not installed.", next_step="Run `./run setup`.")
