"""Values for tests of templates in Go's syntax."""

from __future__ import annotations

from typing import Any

import pytest

from deepgrid.modules.gotemplate import Part, TemplateLimits, fill_in_go
from deepgrid.modules.template import TemplateFault
from deepgrid.workflow.models import JobResources, Step, StepRun, StepUse

STEPS = (
    Step(name="one", run=StepRun(command="echo 1\necho 2", map_uid=0)),
    Step(name="yes", run=StepRun(command="x: y", mpi="none")),
)
USE = StepUse(source="a/b/c@v1", args=(), export_env_as=None, steps=STEPS)
RESOURCES = JobResources(tasks=4, cpus_per_task=2, mem_per_cpu=100, gpus=0)
STEP = Part(".Step", {"Name": "calls it", "DependsOn": ("a", "b"), "If": None, "Use": USE, "Run": None, "Steps": ()})
ROOT = Part("", {"Job": Part(".Job", {"Resources": RESOURCES}), "Step": STEP})


def filled(text: str, root: Any = ROOT, **limits: int) -> str:
    return fill_in_go(text, root, TemplateLimits(**limits)).text


def fault(text: str, **limits: int) -> tuple[int, str]:
    with pytest.raises(TemplateFault) as caught:
        filled(text, **limits)
    return caught.value.line, caught.value.what
