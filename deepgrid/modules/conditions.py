"""Checks the conditions (`if`) of steps with the grammar of bash, which reads them and runs nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache

from deepgrid.modules.children import OutOfTime, run
from deepgrid.workflow import Step
from deepgrid.workflow.models.walk import steps_in
from deepgrid.workflow.yaml_nodes import Path

PARSED_WITHIN_S = 10.0
_UNFINISHED = re.compile(r"(^|&&|\|\||\s!|^!)\s*\Z")
_WRONG = "is not a test that bash's [[ ]] can evaluate; write one such as $A = 1, or -e $FILE"


def faulty_conditions(steps: Sequence[Step], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield conditions that would fail whenever they are evaluated. None are found where bash is not installed."""
    for place, step in steps_in(steps, path):
        if step.if_ and not _is_condition(step.if_):
            own = step.if_.strip()
            bracketed = own.startswith("[ ") and own.endswith(" ]")
            yield (*place, "if"), _WRONG + (", without the brackets around it" if bracketed else "")


@lru_cache(maxsize=1024)
def _is_condition(text: str) -> bool:
    """Return whether bash can parse `[[ text ]]`. The option -n keeps bash from running anything of it.

    The exit status of `bash -n` is 0 for most faults, so its messages count too. It has none for `_UNFINISHED`.
    """
    bash = shutil.which("bash")
    if _UNFINISHED.search(text):
        return False
    if bash is None:
        return True
    command = [bash, "--norc", "--noprofile", "-n"]
    try:
        done = run(command, within_s=PARSED_WITHIN_S, env={"LC_ALL": "C"}, given=f"[[ {text} ]]\n".encode())
    except OutOfTime:
        return False
    return done.returncode == 0 and not done.stderr
