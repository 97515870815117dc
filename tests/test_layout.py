"""The repository keeps its own rules: short files and functions, one meaning per module name, tests that mirror it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import HALVES, SECOND_HALVES, WORKERS_FOR_FOLDERS, scope_of

REPOSITORY = Path(__file__).parents[1]
TESTS = REPOSITORY / "tests"
PACKAGES = ("deepgrid", "orchestration", "tasks", "flows", "blocks", "deployments")
MOST_LINES_PER_FILE, MOST_LINES_PER_FUNCTION = 300, 40
MOST_LINES_OF_A_PUBLIC_CLASS = 500  # with the docstrings that customers read
PUBLIC_CLASSES = {f"deepgrid/client/{name}.py" for name in ("grid", "job", "session")}
MOST_MODULES = 14  # in one folder; a larger package has rooms
MOST_FLOWS = 16  # one per file; a room would change the entrypoints of deployments that exist
INDENT = 4  # of a code block in Markdown


# Names of modules in more than one package, and why that is correct.
VERBS = "the verbs of dps for the part of the library that has this name"
RULE = "a pure rule and the step that applies it"
SAME_NAME: dict[str, str] = {
    "deploy": VERBS,
    "errors": "errors of the library, and errors that only the client raises",
    "expiry": RULE,
    "grid": "the grid as dps opens it, as the client does, as a Prefect block names it, and as one machine runs it",
    "job": "the verbs of dps, the values of a job, and the job of the client",
    "operator": "the verbs of dps, those that need Prefect, and the block of a role",
    "provider": "the verbs of dps, those that need Prefect, and the block of a role",
    "network": "a workflow's networks, the script that sets them up, and their measurement",
    "registration": "the proposal of a provider, and the proposal of the one-machine grid's roles to Prefect",
    "session": "what each role holds open: customer, provider, operator",
    "settings": "settings objects: of benchmarks, and of the client",
    "cleanup": "what ended claims leave, on a cluster and in the services' store",
    "storage": "the volumes of a script, and their measurement",
    "wallet": "the key that signs, and the balances that the client shows",
    "workflow": VERBS,
    "zombies": RULE,
}


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def modules(*folders: str) -> Iterator[Path]:
    """Yield the Python files below these folders of the repository."""
    for folder in folders:
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Yield the dotted names of everything that a file may import."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_test_module(dotted: str) -> bool:
    """Return whether a dotted name belongs to a module of tests."""
    file = REPOSITORY.joinpath(*dotted.split(".")).with_suffix(".py")
    return dotted.startswith("tests.") and file.name.startswith("test_") and file.exists()


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines the body of a function has, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def drawn_folders() -> set[str]:
    """Return the folders in the architecture page's drawing of the house. Their depth is their indentation."""
    page = (REPOSITORY / "docs" / "explanation" / "architecture.md").read_text()
    drawing = page.partition("<!-- not run: a drawing of the folders -->")[2].lstrip().partition("\n\n")[0]
    above: list[str] = []
    found = set[str]()
    for line in drawing.splitlines():
        name = line.split()[0] if line.split() else ""
        depth = (len(line) - len(line.lstrip()) - INDENT) // 2 if found else 0
        if name.endswith("/") and depth <= len(above):
            above[depth:] = [name]
            found.add("".join(above).rstrip("/"))
    return found


def test_the_drawing_of_the_house_has_every_package() -> None:
    drawn = drawn_folders()
    packages = {
        str(file.parent.relative_to(REPOSITORY))
        for folder in PACKAGES
        for file in (REPOSITORY / folder).rglob("__init__.py")
    }
    assert packages - drawn == set()
    assert [folder for folder in sorted(drawn) if not (REPOSITORY / folder).is_dir()] == []


def test_no_test_module_imports_another_test_module() -> None:
    found = [
        f"{file.relative_to(REPOSITORY)} imports {name}"
        for file in modules("tests")
        for name in sorted(set(imported(file)))
        if is_test_module(name)
    ]
    assert not found, "Move what both need into a support module:\n" + "\n".join(found)


def test_long_tests_are_marked_in_their_own_modules() -> None:
    """Modules without the words `mark.long` are not even imported when only long tests run."""
    others = (file for file in modules("tests") if not file.name.startswith("test_") and file.name != "conftest.py")
    assert [str(file) for file in others if re.search(r"mark\.(long|deep)", file.read_text())] == []


def test_the_halves_of_long_folders_name_modules_that_exist() -> None:
    for folder, names in (HALVES | SECOND_HALVES).items():
        assert [name for name in names if not (TESTS / folder / f"{name}.py").exists()] == []
    halved = "tests/slurm/test_crashes.py::test_one", "tests/slurm/test_leader.py::test_one"
    assert [scope_of(one, WORKERS_FOR_FOLDERS) for one in halved] == ["slurm", "slurm"]
    assert [scope_of(one, WORKERS_FOR_FOLDERS + 1) for one in halved] == ["slurm, second grid", "slurm"]


def test_every_package_of_the_library_has_its_folder_of_tests() -> None:
    packages = {folder.parent.name for folder in (REPOSITORY / "deepgrid").glob("*/__init__.py")}
    mirrored = {folder.name for folder in TESTS.iterdir() if any(folder.glob("test_*.py"))}
    assert packages <= mirrored


def test_no_package_is_a_long_list_of_modules() -> None:
    counts = Counter(
        str(file.parent.relative_to(REPOSITORY)) for file in modules(*PACKAGES) if file.name != "__init__.py"
    )
    most = {"flows": MOST_FLOWS}
    assert {folder: count for folder, count in counts.items() if count > most.get(folder, MOST_MODULES)} == {}


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_no_file_is_too_long(folder: str) -> None:
    lengths = {str(file.relative_to(REPOSITORY)): len(file.read_text().splitlines()) for file in modules(folder)}
    most = dict.fromkeys(PUBLIC_CLASSES, MOST_LINES_OF_A_PUBLIC_CLASS)
    assert not {file: length for file, length in lengths.items() if length > most.get(file, MOST_LINES_PER_FILE)}


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_no_function_is_too_long(folder: str) -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{node.lineno} {node.name}: {length} lines"
        for file in modules(folder)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := code_lines(node)) > MOST_LINES_PER_FUNCTION
    ]
    assert not found, "\n".join(found)


def test_no_module_has_the_name_of_one_in_another_package() -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for file in modules(*PACKAGES):
        if not file.stem.startswith("__"):
            folders[file.stem].append(str(file.parent.relative_to(REPOSITORY)))
    repeated = {name: where for name, where in folders.items() if len(where) > 1}
    unexplained = {name: where for name, where in repeated.items() if name not in SAME_NAME}
    assert not unexplained, "Rename one of each, or give the reason in SAME_NAME"
    assert SAME_NAME.keys() <= repeated.keys(), "Remove the names that are used once now"
