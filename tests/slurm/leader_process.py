"""A candidate in a separate process, which a test can kill or stop. Prints `leading EPOCH`, later `deposed`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from deepgrid.errors import Deposed
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.supervision.leader import Leader, LeaderSettings


async def main() -> None:
    """Lead a provider. Arguments: the provider, LeaderSettings as JSON, and LoginSettings as JSON."""
    provider, timing, raw = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    paths = {name: Path(raw[name]) for name in ("key_file", "known_hosts_file")}
    settings = LoginSettings(**{**raw, **paths, "accounts": CustomerAccounts(**raw["accounts"])})
    login = Login(settings)
    cluster = Cluster(login, settings)
    leader = Leader(login, cluster, provider, LeaderSettings(**timing))
    await leader.elected()
    assert cluster.term is not None
    print(f"leading {cluster.term.epoch}", flush=True)
    try:
        await leader.hold()
    except Deposed:
        print("deposed", flush=True)
    await login.close()


if __name__ == "__main__":
    asyncio.run(main())
