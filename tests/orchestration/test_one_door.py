"""One module has all that Prefect does not document, so a new release of Prefect is checked in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from prefect.workers.base import BaseWorker
from prefect.workers.process import ProcessWorker

from orchestration.worker import InProcessWorker

ROOT = Path(__file__).parents[2]
DOOR = Path("orchestration/prefect_internals.py")
PACKAGES = ("deepgrid", "orchestration", "tasks", "flows", "blocks", "deployments")
UNDOCUMENTED = ("prefect.flow_engine", "prefect.task_engine", "prefect.logging.handlers", "prefect.events.worker")


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.relative_to(ROOT) != DOOR:
                yield path.relative_to(ROOT), ast.parse(path.read_text())


def is_private(module: str) -> bool:
    return module.startswith(UNDOCUMENTED) or ("prefect" in module.split(".")[:1] and "._" in module)


def test_one_module_imports_what_prefect_does_not_document() -> None:
    found = [
        f"{path}:{node.lineno} imports {node.module}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and is_private(node.module)
    ]
    assert not found, f"move it to {DOOR}"


def test_one_module_calls_endpoints_by_their_paths() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in sources()
        if path.parts[0] != "deepgrid"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "client.request"
    ]
    assert not found, f"move it to {DOOR}"


def test_the_worker_uses_no_private_name_of_prefects_worker() -> None:
    """This includes names that both would have by chance."""
    tree = ast.parse((ROOT / "orchestration/worker.py").read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} | set(vars(InProcessWorker))
    stock = {*dir(BaseWorker), *vars(ProcessWorker("pool"))}
    assert not {name for name in used & stock if name.startswith("_") and not name.startswith("__")} - {"_abc_impl"}
