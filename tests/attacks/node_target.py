"""The one-machine grid's node behind its filter as a target, and the methods that the filter must refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.node.anvil import Anvil

THIEF = "0x00000000000000000000000000000000000000aa"
VICTIM = "0x00000000000000000000000000000000000000bb"
RICH = 10**18
MINE = {"from": VICTIM, "to": THIEF, "value": "0x1"}


@dataclass
class Target:
    """The node behind its filter, and a victim with a balance."""

    anvil: Anvil
    table: ProcessTable
    http: httpx.Client

    def ask(self, request: object) -> Any:
        """Return the filter's answer to a request or a batch."""
        return self.post(json.dumps(request)).json()

    def post(self, body: str | bytes) -> httpx.Response:
        return self.http.post("/", content=body)

    def balance(self, address: str) -> int:
        return int(self.ask(call("eth_getBalance", address, "latest"))["result"], 16)

    def private(self, method: str, *params: Any) -> Any:
        """Call any method through the grid's private socket."""

        async def ask() -> Any:
            node = self.anvil.private()
            try:
                return await node.call(method, *params)
            finally:
                await node.close()

        return asyncio.run(ask())


def call(method: str, *params: object, number: int = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def started(state: Path) -> Iterator[Target]:
    anvil, table = Anvil(state / "anvil", PortBook(state / "ports.json").port("node-filter")), ProcessTable(state)
    try:
        anvil.prepare()
        for daemon in (anvil.daemon(), anvil.miner(), anvil.filter()):
            table.start(daemon)
            table.wait_ready(daemon)
        with httpx.Client(base_url=anvil.rpc_url, trust_env=False, timeout=60) as http:
            target = Target(anvil, table, http)
            target.private("anvil_setBalance", VICTIM, hex(RICH))
            yield target
    finally:
        for name in table.names():
            table.stop(name)


CHEATS = [
    call("anvil_setBalance", THIEF, hex(RICH)), call("hardhat_setBalance", THIEF, hex(RICH)),
    call("tenderly_setBalance", THIEF, hex(RICH)), call("anvil_addBalance", THIEF, hex(RICH)),
    call("anvil_impersonateAccount", VICTIM), call("hardhat_impersonateAccount", VICTIM),
    call("anvil_autoImpersonateAccount", True), call("eth_sendTransaction", MINE),
    call("eth_sendUnsignedTransaction", MINE), call("anvil_setCode", VICTIM, "0x00"),
    call("anvil_setStorageAt", VICTIM, "0x0", "0x" + "00" * 32), call("anvil_setNonce", VICTIM, "0x64"),
    call("evm_increaseTime", 10**6), call("evm_setNextBlockTimestamp", 2**33), call("evm_setTime", 2**33),
    call("evm_mine"), call("anvil_mine", "0x3e8"), call("hardhat_mine", "0x3e8"), call("evm_setAutomine", True),
    call("evm_setIntervalMining", 0), call("anvil_setIntervalMining", 0), call("evm_snapshot"),
    call("evm_revert", "0x0"),
    call("anvil_rollback", 1), call("anvil_reorg", 1, []), call("anvil_reset"), call("hardhat_reset"),
    call("anvil_loadState", "0x"), call("anvil_dumpState"), call("anvil_dropTransaction", "0x" + "00" * 32),
    call("anvil_dropAllTransactions"), call("anvil_setBlockGasLimit", "0x1"), call("evm_setBlockGasLimit", "0x1"),
    call("anvil_setMinGasPrice", "0xffffffffff"), call("anvil_setNextBlockBaseFeePerGas", "0xffffffffff"),
    call("anvil_setChainId", 1), call("anvil_setCoinbase", THIEF), call("anvil_setRpcUrl", "http://127.0.0.1:1"),
    call("anvil_setLoggingEnabled", True), call("anvil_nodeInfo"), call("anvil_metadata"),
    call("anvil_enableTraces"), call("debug_traceTransaction", "0x" + "00" * 32),
    call("debug_traceCall", MINE, "latest"),
    call("debug_getRawTransaction", "0x" + "00" * 32), call("trace_block", "latest"), call("trace_filter", {}),
    call("txpool_content"), call("txpool_inspect"), call("eth_accounts"), call("eth_sign", VICTIM, "0x00"),
    call("eth_signTransaction", MINE), call("eth_signTypedData_v4", VICTIM, {}), call("personal_listAccounts"),
    call("personal_unlockAccount", VICTIM, "", 300), call("admin_addPeer", "enode://"), call("miner_stop"),
    call("wallet_getCapabilities"), call("wallet_sendTransaction", MINE), call("eth_newFilter", {}),
    call("eth_newPendingTransactionFilter"), call("eth_subscribe", "newHeads"), call("ots_getApiLevel"),
    call("erigon_getHeaderByNumber", "0x1"), call("rpc_modules"), call("deal_erc20", THIEF),
    call("anvil_dealERC20", THIEF),
]  # fmt: skip
