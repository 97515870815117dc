"""The log lines in the source code of the library and of the Prefect project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LOGGED = ("deepgrid", "orchestration", "tasks", "flows", "deployments", "blocks")
STORIES = "deepgrid/provider/claims"  # what happens to a job, line by line
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


@dataclass(frozen=True)
class LogLine:
    """One call of a logger. `event` is its format string; a field of an f-string is shown as {name}."""

    file: str
    level: str
    event: str


@cache
def log_lines(root: Path) -> list[LogLine]:
    """Return every log line of the code below `root`, except `debug`, by file."""
    found = set()
    for package in LOGGED:
        for path in sorted((root / package).rglob("*.py")):
            for line in _lines(ast.parse(path.read_text()), str(path.relative_to(root))):
                found.add(line)
    return sorted(found, key=lambda line: (line.file, line.event))


def _lines(tree: ast.Module, file: str) -> Iterator[LogLine]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and _is_logger(node.func.value):
            level, texts = node.func.attr, node.args
            if level == "log":
                level, texts = "warning", node.args[1:]
        elif isinstance(node.func, ast.Name) and node.func.id == "warn":
            level, texts = "warning", node.args[1:]
            if len(node.args) > 3:
                continue  # a level of its own: debug
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "tell" and file.startswith(STORIES):
            level, texts = "info", node.args
        elif isinstance(node.func, ast.Name) and node.func.id == "ConditionLog" and len(node.args) == 2:
            yield LogLine(file, "warning", f"{_event(node.args[1])}, trying again: %s")
            continue
        else:
            continue
        if level in LEVELS - {"debug"} and texts and _event(texts[0]) != "%s":
            yield LogLine(file, {"exception": "error"}.get(level, level), _event(texts[0]))


def _is_logger(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "get_run_logger"
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_") in ("log", "logger")


def _event(text: ast.expr) -> str:
    if isinstance(text, ast.Constant):
        return str(text.value)
    if isinstance(text, ast.JoinedStr):
        parts = (
            str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
            for part in text.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
        return "".join(parts)
    return "{" + ast.unparse(text) + "}"
