"""A bench whose scripts run in a sandbox: an ordinary account, a usable /dev/net/tun, and a small network outside.

`has_tun` is False if the kernel has no /dev/net/tun or this account may not open it. Then a script must print `NO_TUN`
and fail with 69, and the tests check that instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from deepgrid.sbatch import render
from deepgrid.workflow import Definition
from tests.sbatch.support import SRUN, Bench, Outcome

CANNOT = "deepgrid: the network of a step cannot be set up: "
NO_TUN = CANNOT + "this node has no /dev/net/tun that this account may open"
UNAVAILABLE = 69

# Like Slurm, sends each signal to every process of the step.
EXECUTE = """
while case $1 in --*) ;; *) false ;; esac; do shift; done
setsid -- "$@" &
step=$!
trap 'pkill -TERM --session "$step"' TERM
while :; do
  wait "$step"
  status=$?
  kill -0 "$step" 2>/dev/null || exit "$status"
done
"""


class Sandbox(Bench):
    """A bench below /tmp that other accounts may enter."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="dg-net-")))
        for folder in (self.root, self.records, *map(Path, self.storage.roots)):
            folder.chmod(0o1777)
        (self.root / "bin" / "srun").write_text(SRUN.format(records=self.records) + EXECUTE)

    def remove(self) -> None:
        shutil.rmtree(self.root)

    def run(
        self, job: Definition, *, prepare: str = "", meanwhile: str = "", hide_tun: bool = False, **env: str
    ) -> Outcome:
        """Run the script with `prepare` and `meanwhile` as in sandbox.sh. It must leave nothing behind.

        Its output so far is in the file `output` of the root.
        """
        script = render(job, self.storage)
        for name, text in (("script", script), ("prepare", prepare), ("meanwhile", meanwhile)):
            (self.root / name).write_text(text)
        status, output = self._in_sandbox({**env, "HIDE_TUN": "1"} if hide_tun else env)
        assert (self.root / "left").read_text() == "", output
        assert self.left_behind() == []
        calls = [
            self._call(path) for path in sorted(self.records.glob("*.env"), key=lambda p: int(p.stem.partition("-")[0]))
        ]
        for old in self.records.iterdir():
            old.unlink()
        return Outcome(status, output, calls)

    def _in_sandbox(self, env: dict[str, str]) -> tuple[int, str]:
        with (self.root / "output").open("wb") as output:
            done = subprocess.run(
                [*_unshare(), "bash", str(Path(__file__).with_name("sandbox.sh")), str(self.root), sys.executable],
                check=False, cwd=self.root, timeout=120, stdout=output, stderr=subprocess.STDOUT,
                env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "SLURM_JOB_NAME": "0x1", "SLURM_JOB_ID": "7", **env},
            )  # fmt: skip
        return done.returncode, (self.root / "output").read_text(errors="replace")


def _unshare() -> list[str]:
    own_user = [] if os.getuid() == 0 else ["--map-root-user"]
    return ["unshare", *own_user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]


@cache
def has_tun() -> bool:
    """Return whether an ordinary account of a sandbox can have a tap device. Root can create one for it."""
    if os.getuid() != 0:
        return os.access("/dev/net/tun", os.R_OK | os.W_OK)
    make = "mount -t tmpfs tmpfs /mnt && mknod /mnt/tun c 10 200 && : <>/mnt/tun"
    return subprocess.run([*_unshare(), "sh", "-c", make], check=False, capture_output=True).returncode == 0
