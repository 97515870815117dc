"""A program that fills in one template within limits. It does not import deepgrid, and needs no environment.

Reads `{"text", "values", "cpu_s", "memory_bytes", "most_characters"}` as JSON. Writes `{"text", "lines"}` or
`{"fault", "line"}`. `lines` maps each line of the result to its line in the template. After reading, the program
can open no file, start no process, and write only the answer.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import traceback
from contextlib import suppress
from typing import Any

import jinja2.debug  # noqa: F401 - jinja2 would import it at the first error, when no file can be opened any more
from jinja2 import StrictUndefined, TemplateError, TemplateRuntimeError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MARK = re.compile("(?:\\s*\0[0-9]+\0)*?\\s*\0([0-9]+)\0(?!\\s*\0)")  # the last mark before the text of a line
_TOLD = (ArithmeticError, LookupError, TypeError, ValueError)


class Templates(ImmutableSandboxedEnvironment):
    """Templates of YAML with shell text. Comments are <# #>, because {# and #} are common in shell text."""

    def __init__(self) -> None:
        super().__init__(
            comment_start_string="<#",
            comment_end_string="#>",
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            undefined=StrictUndefined,
            autoescape=False,
        )
        self.filters["toYaml"] = to_yaml
        self.globals["fail"] = fail

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up keys of dicts first, so that a key such as `items` hides the Python method."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Fault(Exception):
    """A fault of a template."""


def to_yaml(value: object) -> str:
    """Return a value as YAML on one line, which is valid at any place of a value."""
    return json.dumps(value, ensure_ascii=True)


def fail(sentence: object) -> None:
    """The function `fail` of templates: refuse the given values."""
    raise TemplateRuntimeError(str(sentence))


def expand(text: str, values: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the result of a template, and the origins of its lines."""
    templates = Templates()
    result = _render(templates, templates.parse(text), values, most)
    marked = templates.parse(text)
    for data in marked.find_all(nodes.TemplateData):
        parts = data.data.split("\n")
        data.data = "\n".join(f"\0{data.lineno + number}\0{part}" for number, part in enumerate(parts))
    lines, line = [], 1
    for shown in _render(templates, marked, values, 20 * most).split("\n"):
        found = _MARK.search(shown)
        line = int(found[1]) if found else line
        lines.append(line)
    return {"text": result, "lines": lines}


def _render(templates: Templates, tree: nodes.Template, values: dict[str, Any], most: int) -> str:
    chunks, size = [], 0
    for chunk in templates.from_string(tree).generate(values):
        size += len(chunk)
        if size > most:
            raise Fault(f"becomes larger than {most // 1024} KiB")
        chunks.append(chunk)
    return "".join(chunks)


def fault_of(error: BaseException) -> dict[str, Any]:
    """Return a fault and its line in the template."""
    if isinstance(error, TemplateSyntaxError):
        return {"fault": f"template: {error.message}", "line": error.lineno}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    line = (frames[-1].lineno or 1) if frames else 1
    if isinstance(error, Fault):
        return {"fault": str(error), "line": 1}
    if isinstance(error, RecursionError):
        return {"fault": "template: calls itself too often", "line": line}
    if isinstance(error, MemoryError):
        return {"fault": "template: takes too much memory", "line": line}
    if isinstance(error, TemplateError):
        return {"fault": f"template: {error}"[:300], "line": line}
    said = f": {error}" if isinstance(error, _TOLD) else ""
    return {"fault": f"template: {type(error).__name__}{said}"[:300], "line": line}


def main() -> None:
    request = json.load(sys.stdin)
    expand("{{ '\\n' | toYaml }}", {}, 100)  # imports all modules that rendering imports
    limits = dict.fromkeys((resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC), 0)
    limits[resource.RLIMIT_NOFILE] = 3
    limits |= {resource.RLIMIT_CPU: request["cpu_s"], resource.RLIMIT_AS: request["memory_bytes"]}
    for which, limit in limits.items():
        with suppress(OSError, ValueError):  # not every system knows all limits
            resource.setrlimit(which, (limit, limit))
    try:
        answer = expand(request["text"], request["values"], request["most_characters"])
    except Exception as error:
        answer = fault_of(error)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
