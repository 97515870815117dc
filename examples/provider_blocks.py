"""Saves the Prefect blocks of one provider with values from the environment. Run it again after every change.

Edit the prices, in wei of credit per minute (1 credit = 10**18 wei), and the labels that customers can use.
"""

from __future__ import annotations

import os
from pathlib import Path

from blocks import Grid, Provider, SlurmLogin, Wallet
from deepgrid.chain.transactions.wallet import Wallet as Key

PRICES = {
    "cpu_wei_per_minute": "950000000000000000",
    "mem_wei_per_mb_minute": "80000000000000",
    "gpu_wei_per_minute": "8500000000000000000",
}
LABELS = {"region": "ch"}


def path(name: str) -> Path:
    """The path in an environment variable."""
    return Path(os.environ[name]).expanduser().absolute()


def save() -> str:
    """Save all blocks under the cluster's name; returns it."""
    cluster = os.environ["CLUSTER"]
    grid = Grid(address_book=path("DEEPGRID_BOOK"))
    grid.save(cluster, overwrite=True)
    wallet = Wallet(address=Key.load(path("DPS_KEY_FILE")).address, key_file=path("DPS_KEY_FILE"))
    wallet.save(cluster, overwrite=True)
    login = SlurmLogin(
        host=os.environ["LOGIN_HOST"],
        port=int(os.environ["LOGIN_PORT"]),
        user=os.environ["LOGIN_USER"],
        key_file=path("LOGIN_KEY"),
        known_hosts_file=path("LOGIN_KNOWN_HOSTS"),
        grid_root=os.environ["GRID_ROOT"],
        storage_root=os.environ["STORAGE_ROOT"],
        partition=os.environ["PARTITION"],
        job_account=os.environ["JOB_ACCOUNT"] or None,
    )
    login.save(cluster, overwrite=True)
    provider = Provider(
        cluster=cluster, grid=grid, wallet=wallet, login=login, labels=LABELS, state=path("STATE"),
        metrics_port=int(os.environ["METRICS_PORT"]), trust_customers=os.environ["TRUST_CUSTOMERS"] == "yes", **PRICES,
    )  # fmt: skip
    provider.save(cluster, overwrite=True)
    return cluster


if __name__ == "__main__":
    print(f"The blocks of {save()} are saved.")
