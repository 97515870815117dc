"""Stand-ins for the programs that run containers. They record their arguments and environments."""

from __future__ import annotations

from pathlib import Path

from deepgrid.sbatch import Containers
from deepgrid.workflow import Definition, parse
from tests.sbatch.support import Bench, Outcome, lint
from tests.slurm.support import Box

# Records environment, arguments and files of a call, then does what the real program would do.
ENROOT = """#!/bin/bash
n=$(date +%s%N)-$$
cat /proc/$$/environ >{root}/calls/$n.env
printf '%s\\0' "$@" >{root}/calls/$n.argv
case $1 in
import)
  [ -e {root}/broken ] && {{ echo "no such image" >&2; exit 1; }}
  [ ! -e "$ENROOT_CONFIG_PATH/.credentials" ] || cp -p "$ENROOT_CONFIG_PATH/.credentials" {root}/calls/$n.credentials
  printf hsqs >"$3"
  ;;
start)
  shift
  while [[ $1 == --* ]]; do
    if [[ $1 == --conf ]]; then
      source "$2"
      mounts >{root}/calls/$n.mounts
      shift
    fi
    shift
  done
  shift
  rc=$(sed -n 's# /etc/rc.local .*##p' {root}/calls/$n.mounts)
  stat -c %a "${{rc%/*}}" >{root}/calls/$n.mode
  exec env -i PATH="$PATH" FROM_IMAGE=image OWN=image /bin/sh -c '. "$0"; echo "entry point: $*"' "$rc" "$@"
  ;;
esac
"""
APPTAINER = """#!/bin/bash
n=$(date +%s%N)-$$
cat /proc/$$/environ >{root}/calls/$n.env
printf '%s\\0' "$@" >{root}/calls/$n.argv
[[ $2 != pull ]] || touch "$5"
"""


class Room(Bench):
    """A bench with stand-ins for the programs that run containers."""

    def __init__(self, root: Path, *, execute: bool = True, site: Box | None = None) -> None:
        super().__init__(root, execute=execute, site=site)
        (root / "calls").mkdir()
        for name, text in (("enroot", ENROOT), ("apptainer", APPTAINER)):
            (root / "bin" / name).write_text(text.format(root=root))
            (root / "bin" / name).chmod(0o755)

    def run_in(self, containers: Containers, steps: str, env: str = "[]") -> Outcome:
        for old in (self.root / "calls").iterdir():
            old.unlink()
        made = job(steps, env)
        lint(made, containers)
        self.containers = containers
        return self.run(made, SLURM_STEP_ID="3", SLURM_PROCID="0", HOME=str(self.root))

    def calls(self, name: str, verb: str) -> list[list[str]]:
        """Return the arguments of each call with this verb."""
        calls = [path.read_bytes().decode().split("\0")[:-1] for path in sorted((self.root / "calls").glob("*.argv"))]
        return [call for call in calls if verb in call[:2]]

    def noted(self, ending: str) -> list[Path]:
        return sorted((self.root / "calls").glob(f"*.{ending}"))


def job(steps: str, env: str = "[]") -> Definition:
    return parse(
        f"resources: {{tasks: 2, cpusPerTask: 1, memPerCpu: 10, gpus: 1}}\nenv: {env}\nsteps: {steps}", "job"
    ).model
