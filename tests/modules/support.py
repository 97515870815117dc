"""Real git repositories with modules, and workflows that use them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid import modules
from deepgrid.errors import InputError
from deepgrid.modules import ModuleLimits
from deepgrid.workflow import Definition, LoadedWorkflow
from deepgrid.workflow.models.walk import steps_in

HEAD = """\
name: greet
description: Greets somebody.
minimumResources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
"""


GREET = (
    HEAD
    + """\
inputs:
  - key: WHO
    description: who is greeted
  - key: TIMES
    description: how often
    default: '1'
outputs: [{key: SAID, description: what was said}]
steps:
{% for number in range(inputs.TIMES | int) %}
  - name: greet {{ number }}
    run: {command: 'echo "Hello $WHO"'}
{% endfor %}
"""
)


RESOURCES = "resources: {tasks: 1, cpusPerTask: 2, memPerCpu: 100, gpus: 0}\n"


@dataclass
class Origin:
    """A repository that others fetch from."""

    folder: Path

    @property
    def url(self) -> str:
        return f"file://{self.folder}"

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *who, *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, text: str, path: str = "module.yaml", tag: str = "") -> str:
        """Commit a file, and tag it. Returns the commit."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=x")
        if tag:
            self.git("tag", "--annotate", "--force", "--message=x", tag)
        return self.git("rev-parse", "HEAD")


def load(
    steps: str, cache: Path, head: str = RESOURCES, *, ignore_unknown_fields: bool = False, **limits: float
) -> LoadedWorkflow:
    Path("job.yaml").write_text(f"{head}steps:\n{steps}")
    bounds = ModuleLimits(**limits)  # type: ignore[arg-type]
    return modules.load("job.yaml", cache, bounds, ignore_unknown_fields=ignore_unknown_fields)


def faults(steps: str, cache: Path, head: str = RESOURCES, **limits: float) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(steps, cache, head, **limits)
    return caught.value.message.splitlines()


def commands(job: Definition) -> list[str]:
    return [step.run.command for _, step in steps_in(job.steps, ("steps",)) if step.run]


def folder(text: str, path: str = "m") -> None:
    Path(path).mkdir(parents=True, exist_ok=True)
    (Path(path) / "module.yaml").write_text(text)
