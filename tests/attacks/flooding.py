"""A job that floods slurmctld with connections, and the rules of the provider's page that limit them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwnam

from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.support import Box

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "provider.md"
CONNECTIONS = 1800
ENOUGH = 600  # slurmctld serves 256 at a time, for ten seconds each; so this flood keeps others waiting for as long
# Holds connections to slurmctld, and replaces closed ones. Prints a line when it has all that it can get.
FLOOD = """
import os, socket, sys, time
held, told = [], False

def is_open(one):
    try:
        return one.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False

while not os.path.exists("leave"):
    held = [one for one in held if is_open(one)]
    try:
        while len(held) < int(sys.argv[2]):
            held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5))
    except OSError:
        time.sleep(0.1)
    told = told or print("up", len(held), flush=True) is None
"""


def flooding(box: Box, connections: int = CONNECTIONS) -> str:
    """Return the commands of a job that floods slurmctld until the file `leave` exists."""
    return f"python3 - {_port_of(box)} {connections} << 'END'\n{FLOOD}\nEND"


@contextmanager
def limited_connections(box: Box, settings: LoginSettings) -> Iterator[None]:
    """Apply the rules of the provider's page to this cluster's port and these customers' accounts."""
    accounts = ", ".join(str(getpwnam(name).pw_uid) for name in settings.accounts.table.values())
    _, _, rules = PAGE.read_text().partition("\n### Connections to slurmctld\n")[2].partition("```\n")
    table = f"deepgrid_test_{_port_of(box)}"
    rules = rules.partition("```")[0].replace("6817", _port_of(box)).replace("20000-59999", f"{{ {accounts} }}")
    subprocess.run(["nft", "-f", "-"], input=rules.replace("inet deepgrid", f"inet {table}"), text=True, check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", "inet", table], check=True)


def _port_of(box: Box) -> str:
    conf = Path(box.site.environment(box.name)["SLURM_CONF"]).read_text()
    found = re.search(r"^SlurmctldPort=(\d+)$", conf, re.MULTILINE)
    assert found
    return found[1]
