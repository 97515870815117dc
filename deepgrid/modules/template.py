"""Fills in a module's template in a sandboxed child process with a timeout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepgrid.modules import expand
from deepgrid.modules.children import OutOfTime, run
from deepgrid.modules.reach import ModuleLimits


class TemplateFault(Exception):
    """The template cannot be filled in; `line` counts from 1."""

    def __init__(self, what: str, line: int = 1) -> None:
        super().__init__(what)
        self.what, self.line = what, line


@dataclass(frozen=True)
class Filled:
    """The result of a template, and the template's line for each line of it."""

    text: str
    lines: tuple[int, ...]


def fill_in(text: str, values: Mapping[str, Any], limits: ModuleLimits) -> Filled:
    """Evaluate the expressions and blocks of the text. Raises TemplateFault."""
    request = {"text": text, "values": values, "most_characters": limits.file_bytes}
    request |= {"cpu_s": limits.template_cpu_s, "memory_bytes": limits.template_memory_bytes}
    command = [sys.executable, "-I", str(Path(expand.__file__))]
    try:
        done = run(command, within_s=limits.template_within_s, env={}, given=json.dumps(request).encode())
    except OutOfTime:
        raise TemplateFault(f"template: takes longer than {limits.template_within_s:.0f} s") from None
    if done.returncode != 0:  # the child reports all other faults itself, so a limit ended it
        raise TemplateFault("template: takes more time or memory than a module may")
    answer = json.loads(done.stdout)
    if "fault" in answer:
        raise TemplateFault(answer["fault"], answer["line"])
    return Filled(answer["text"], tuple(answer["lines"]))
