"""An attacker with an account on this machine, like a job's account, that sends requests and reads files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam

import pytest

from deployments.onemachine.slurm import accounts
from tests.slurm.support import open_folder

PYTHON = "/usr/bin/python3"  # the account may have no access to the checkout
REQUEST = """
import json, sys, urllib.request
url, method, body, headers = json.load(sys.stdin)
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
try:
    answer = opener.open(request, timeout=30)
except urllib.error.HTTPError as error:
    answer = error
print(json.dumps([answer.status, answer.read().decode(errors="replace")]))
"""


@dataclass(frozen=True)
class Answer:
    """The answer of a server."""

    status: int
    text: str


@dataclass(frozen=True)
class Attacker:
    """An account without any rights."""

    name: str
    uid: int

    def run(self, argv: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as the account. Any exit status is accepted."""
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]
        return subprocess.run(
            [*become, *argv], input=stdin, capture_output=True, text=True, cwd="/", env={"PATH": os.defpath},
            timeout=60, check=False,
        )  # fmt: skip

    def request(self, url: str, method: str = "GET", body: object = None, **headers: str) -> Answer:
        """Send an HTTP request."""
        text = "" if body is None else json.dumps(body)
        sent = json.dumps([url, method, text, {"Content-Type": "application/json", **headers}])
        done = self.run([PYTHON, "-c", REQUEST], sent)
        assert done.returncode == 0, done.stderr
        return Answer(*json.loads(done.stdout))

    def can_read(self, path: Path | str) -> bool:
        """Return whether the account can read a file."""
        return bool(self.run(["head", "-c", "1", str(path)]).stdout)


@contextmanager
def attacker_beside_a_grid() -> Iterator[tuple[Attacker, Path]]:
    """Yield the account of jobs, and a state folder that it may enter. Only root can create them."""
    if os.getuid() != 0:
        pytest.skip("needs root, which gives jobs their own account")
    with open_folder() as folder:
        account, note = accounts.choose_job_account(folder)
        assert account, note
        yield Attacker(account, getpwnam(account).pw_uid), folder
