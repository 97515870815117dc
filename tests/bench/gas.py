"""`./run bench gas`: compares the gas of a job with a plain design that keeps everything in storage.

Both are compiled with the settings of `contracts/foundry.toml` and run on a development chain. The figures come from
receipts. Each figure is the mean of eight jobs after a first one, because the gas of a job depends on the position of
its id in its customer's list.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eth_utils.crypto import keccak
from rich.console import Console
from rich.table import Table

import contracts
from deepgrid.chain.node.contract import Interface
from deepgrid.chain.node.values import coded_hardware, coded_id, coded_prices
from deepgrid.lifecycle.job import Hardware, Prices
from deepgrid.lifecycle.states import JobStatus
from tests.chain.anvil import Anvil

HOME = Path(contracts.__file__).parent
CREDIT = 10**18
LOCKED_WEI = 200 * CREDIT
MINUTES = 5
MEASURED = 8  # the number of ids in one slot of a customer's list
BATCH = 100
BATCH_GAS = 29_000_000

LOCATION = "ab" * 23
USES = [("os", "linux"), ("gpu", "none")]
AFFINITY = [(("zone", "west"), b"==")]
Definition = tuple[Any, ...]
WITH_LABELS: Definition = (1, 1000, 2, 3, LOCATION, 4, USES, AFFINITY)
PLAIN: Definition = (1, 1000, 2, 3, LOCATION, 4, [], [])

REPORTED = (JobStatus.RUNNING, JobStatus.FINISHED)
CALLS = ("request", "schedule", "claim", "RUNNING", "settled")
ADMIN, OPERATOR, PROVIDER, CUSTOMER = (f"0x{number:040x}" for number in (0xA1, 0xA2, 0xA3, 0xA4))

Costs = dict[str, float]


class Node:
    """A development chain that accepts transactions of any account."""

    def __init__(self, anvil: Anvil) -> None:
        self.anvil = anvil
        anvil.call("anvil_autoImpersonateAccount", True)
        for address in (ADMIN, OPERATOR, PROVIDER, CUSTOMER):
            anvil.fund(address)

    def send(self, sender: str, to: str | None, data: str) -> dict[str, Any]:
        """Send a call that must succeed, and return its receipt."""
        wanted = {"from": sender, "data": data, "gas": hex(BATCH_GAS), **({"to": to} if to else {})}
        transaction = self.anvil.call("eth_sendTransaction", wanted)
        receipt: dict[str, Any] | None = None
        while receipt is None:  # the chain mines each transaction at once, in its own thread
            receipt = self.anvil.call("eth_getTransactionReceipt", transaction)
        assert receipt["status"] == "0x1", f"a call of {to} failed"
        return receipt


@dataclass(frozen=True)
class Contract:
    """One deployed contract."""

    node: Node
    interface: Interface
    address: str

    @classmethod
    def create(cls, node: Node, name: str, *args: str) -> Contract:
        built = _built(name)
        views = _built("RareCalls")["abi"] if name == "MetaScheduler" else []  # served through the fallback
        abi = [*built["abi"], *(entry for entry in views if entry["type"] == "function")]
        interface = Interface(name, abi, built["bytecode"]["object"])
        receipt = node.send(ADMIN, None, interface.creation(*args))
        return cls(node, interface, receipt["contractAddress"])

    def send(self, sender: str, function: str, *args: Any) -> int:
        """Return the gas used by the call."""
        receipt = self.node.send(sender, self.address, self.interface.encode(function, *args))
        return int(receipt["gasUsed"], 16)

    def read(self, function: str, *args: Any) -> Any:
        data = self.interface.encode(function, *args)
        answer = self.node.anvil.call("eth_call", {"to": self.address, "data": data}, "latest")
        return self.interface.decode(function, bytes.fromhex(answer[2:]))


class Life(Protocol):
    """One design. It runs jobs from request to settlement and returns the gas of each call."""

    def run(self, definition: Definition) -> Costs: ...


class Baseline:
    """The plain design of contracts/test/baseline."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.credit = Contract.create(node, "BaselineCredit", ADMIN)
        manager = Contract.create(node, "BaselineProviderManager", ADMIN)
        self.grid = Contract.create(node, "BaselineMetaScheduler", self.credit.address, manager.address, ADMIN)
        self.grid.send(ADMIN, "grantRole", _hash("META_SCHEDULER"), OPERATOR)
        manager.send(PROVIDER, "register", (2, 8, 32, 128_000), (8 * 10**6, 10**6, 100), USES)
        manager.send(ADMIN, "approve", PROVIDER)
        _endow(self.credit, self.grid)

    def run(self, definition: Definition) -> Costs:
        costs: Costs = {"request": self.grid.send(CUSTOMER, "requestNewJob", definition, LOCKED_WEI, b"job", False)}
        job = coded_id(self.grid.read("nonce"))
        costs["schedule"] = self.grid.send(OPERATOR, "metaSchedule", job, PROVIDER)
        costs["claim"] = self.grid.send(PROVIDER, "claimNextJob")
        running, finished = (job, JobStatus.RUNNING, 0, "", 0), (job, JobStatus.FINISHED, MINUTES, "", 0)
        costs["RUNNING"] = self.grid.send(PROVIDER, "providerSetJobStatus", *running)
        self.node.anvil.pass_time(MINUTES * 60)
        costs["settled"] = self.grid.send(PROVIDER, "providerSetJobStatus", *finished)
        return costs


class Deepgrid:
    """The contracts of this project, as deployed."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.credit = Contract.create(node, "Credit")
        manager = Contract.create(node, "ProviderManager")
        self.grid = Contract.create(node, "MetaScheduler", self.credit.address, manager.address)
        manager.send(ADMIN, "grantRole", _hash("METASCHEDULER_ROLE"), OPERATOR)
        manager.send(ADMIN, "grantRole", _hash("METASCHEDULER_CONTRACT_ROLE"), self.grid.address)
        self.grid.send(ADMIN, "grantRole", _hash("METASCHEDULER_ROLE"), OPERATOR)
        hardware = coded_hardware(Hardware((400, 400), (1600, 1600), (6_400_000, 6_400_000)))
        manager.send(PROVIDER, "register", hardware, coded_prices(Prices(8 * CREDIT, CREDIT, 10**14)), USES)
        manager.send(OPERATOR, "approveProposal", PROVIDER, manager.read("proposalHash", PROVIDER))
        _endow(self.credit, self.grid)

    def run(self, definition: Definition) -> Costs:
        costs: Costs = {"request": self.grid.send(CUSTOMER, "requestNewJob", definition, LOCKED_WEI, b"job", False)}
        job = coded_id(self.grid.read("jobIdCounter"))
        costs["schedule"] = self.grid.send(OPERATOR, "metaSchedule", job, PROVIDER)
        costs["claim"] = self.grid.send(PROVIDER, "claimNextJob")
        running, finished = (job, JobStatus.RUNNING, 0, "", 0), (job, JobStatus.FINISHED, MINUTES, "", 0)
        costs["RUNNING"] = self.grid.send(PROVIDER, "providerSetJobStatus", *running)
        self.node.anvil.pass_time(MINUTES * 60)
        costs["settled"] = self.grid.send(PROVIDER, "providerSetJobStatus", *finished)
        return costs


class Batched(Deepgrid):
    """The same contracts with BATCH jobs per call. Figures are gas per job."""

    def run(self, definition: Definition) -> Costs:
        request = (definition, LOCKED_WEI, b"job", False)
        gas = {"request": self.grid.send(CUSTOMER, "requestNewJobs", [request] * BATCH)}
        last = self.grid.read("jobIdCounter")
        jobs = [coded_id(job) for job in range(last - BATCH + 1, last + 1)]
        gas["schedule"] = self.grid.send(OPERATOR, "metaScheduleJobs", [(job, PROVIDER) for job in jobs])
        gas["claim"] = self.grid.send(PROVIDER, "claimNextJobs", BATCH)
        running, finished = ([(job, status, MINUTES, "", 0) for job in jobs] for status in REPORTED)
        gas["RUNNING"] = self.grid.send(PROVIDER, "providerSetJobStatuses", running)
        self.node.anvil.pass_time(MINUTES * 60)
        gas["settled"] = self.grid.send(PROVIDER, "providerSetJobStatuses", finished)
        return {call: used / BATCH for call, used in gas.items()}


def _built(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HOME / "deployed" / f"{name}.sol" / f"{name}.json").read_text())
    return found


def _hash(role: str) -> bytes:
    return keccak(text=role)


def _endow(credit: Contract, grid: Contract) -> None:
    credit.send(ADMIN, "mint", CUSTOMER, 10**9 * CREDIT)
    credit.send(CUSTOMER, "approve", grid.address, 2**256 - 1)


def mean(life: Life, definition: Definition) -> Costs:
    """Return the gas of each call, after a first job that finds empty storage."""
    life.run(definition)
    runs = [life.run(definition) for _ in range(MEASURED)]
    return {call: sum(run[call] for run in runs) / MEASURED for call in CALLS}


def build() -> None:
    forge = HOME / "node_modules/.bin/forge"
    settings = {**os.environ, "FOUNDRY_PROFILE": "deployed"}
    subprocess.run([forge, "build", "src", "test/baseline", "--silent"], cwd=HOME, env=settings, check=True)


def measure() -> dict[str, dict[str, Costs]]:
    """Return the gas of each call per job, by definition and design."""
    with tempfile.TemporaryDirectory() as folder:
        anvil = Anvil(Path(folder))
        anvil.start()
        try:
            node = Node(anvil)
            designs: dict[str, Life] = {
                "baseline": Baseline(node), "single": Deepgrid(node), "batch": Batched(node),
            }  # fmt: skip
            return {
                kind: {name: mean(life, definition) for name, life in designs.items()}
                for kind, definition in (("labels", WITH_LABELS), ("plain", PLAIN))
            }
        finally:
            anvil.stop()


def show(console: Console, title: str, costs: dict[str, Costs]) -> None:
    table = Table("call", "baseline", "single", "ratio", f"in batches of {BATCH}", "ratio", title=title)
    lives = {name: {**calls, "life cycle": sum(calls.values())} for name, calls in costs.items()}
    for call, plain in lives["baseline"].items():
        single, batch = lives["single"][call], lives["batch"][call]
        table.add_row(call, f"{plain:,.0f}", f"{single:,.0f}", f"{single / plain:.2f}",
                      f"{batch:,.0f}", f"{batch / plain:.2f}")  # fmt: skip
    console.print(table)


def main() -> None:
    build()
    costs = measure()
    console = Console(width=100)
    show(console, "Gas of a job with 2 uses and 1 affinity", costs["labels"])
    show(console, "Gas of a job without labels", costs["plain"])
    total = {kind: {name: sum(calls.values()) for name, calls in by.items()} for kind, by in costs.items()}
    labels, plain = total["labels"], total["plain"]
    figures = {
        "bench": "gas",
        "single_labels_ratio": round(labels["single"] / labels["baseline"], 3),
        "single_plain_ratio": round(plain["single"] / plain["baseline"], 3),
        "batch100_labels_ratio": round(labels["batch"] / labels["baseline"], 3),
        "single_plain_gas": round(plain["single"]),
        "batch100_plain_gas": round(plain["batch"]),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
