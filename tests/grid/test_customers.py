"""On the one-machine grid a customer's job runs under the customer's account and cannot reach the grid's secrets."""

from __future__ import annotations

import os

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.support import cold, steps

pytestmark = [
    pytest.mark.long, pytest.mark.timeout(900),
    pytest.mark.skipif(os.getuid() != 0, reason="only root gives customers accounts of their own"),
]  # fmt: skip

ASK = """
import json, sys, urllib.error, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def ask(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        return opener.open(request, timeout=30).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
prefect, node, thief = sys.argv[1:]
mine = {"name": "mine", "flow_id": "", "work_pool_name": "processes", "job_variables": {"command": "id"}}
print("prefect", ask(f"{prefect}/api/deployments/", mine), ask(f"{prefect}/api/flow_runs/filter", {}))
print("node", "not available" in ask(node, {"id": 1, "method": "anvil_setBalance", "params": [thief, "0xff"]}))
print("chain", "result" in ask(node, {"id": 1, "method": "eth_chainId", "params": []}))
"""


async def test_a_job_runs_as_its_customer_and_reaches_neither_prefect_nor_test_methods_of_the_node(
    customer: Customer,
) -> None:
    grid = customer.grid
    rpc_url = AddressBook.load(grid.book).rpc_url
    secrets = [grid.prefect.login_file, grid.anvil.socket, grid.keys.file("operator"), grid.state / "alpha.env"]
    files = " ".join(str(file) for file in [*secrets, grid.state / "log", grid.state / "postgres" / "password"])
    script = grid.state / "storage" / "ask.py"  # jobs see this folder
    script.write_text(ASK)
    told = f"id -un; python3 {script} {grid.prefect.ui_url} {rpc_url} 0x{'a' * 40}"
    job_id = customer.submit(steps(told, f"cat {files} 2>&1 | grep -c denied || true"), "name=alpha")
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.FINISHED
    said = customer.dps("job", "logs", str(job_id), check=0).stdout
    digits = Wallet.load(grid.keys.file("customer")).address.removeprefix("0x").lower()[:20]
    assert f"dg-alpha-{digits}" in said, said
    assert "prefect 401 401" in said and "node True" in said and "chain True" in said, said
    assert grid.prefect.login() not in said
    assert grid.roles.make_accounts("0x" + digits + "0" * 20) == [f"dg-{name}-{digits}" for name in ("alpha", "beta")]
