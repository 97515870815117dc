"""The text of deepgrid/client/sync/classes.pyi: signatures and docstrings of the sync classes.

A sync class has the members of its async class, as `deepgrid.client.sync.sync_proxy` makes them when Python runs. Type
checkers and the documentation read this stub.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

from deepgrid.client.sync import classes
from deepgrid.client.sync.sync_proxy import SyncProxy, shared_members, without_async

PATH = Path(classes.__file__).with_suffix(".pyi")
HEADER = '"""The sync classes. Written by tools/sync_client from the async classes: do not edit."""'
INDENT = "    "


def stub() -> str:
    """Return the text of the stub, as ruff formats it."""
    body = "\n\n".join(class_text(kind, sync.__name__) for kind, sync in SyncProxy._classes.items())
    return _format("\n\n".join([HEADER, "\n".join(_imports(body)), body]))


def class_text(async_class: type, name: str) -> str:
    """Return the sync class of an async one, with `...` in place of the bodies."""
    shared = sorted(shared_members(async_class).items(), key=lambda one: one[0] != "__init__")  # the constructor first
    members = [_member(name, member) for name, member in shared]
    return f"class {name}:\n{indent(_docstring(async_class) + ''.join(members), INDENT)}"


def _member(name: str, member: object) -> str:
    """Return a method or a property."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    node = ast.parse(dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments, returned = ast.unparse(node.args), without_async(ast.unparse(node.returns or ast.Constant(None)))
    if "Async" in arguments + returned:
        raise SystemExit(f"{function.__qualname__}({arguments}) -> {returned} has no sync form.")
    decorators = "".join(f"@{ast.unparse(one)}\n" for one in node.decorator_list)
    body = _docstring(function) or "...\n"
    return f"{decorators}def {name}({arguments}) -> {returned}:\n{indent(body, INDENT)}"


def _docstring(documented: type | object) -> str:
    text = without_async(inspect.getdoc(documented) or "").replace("\\", r"\\")
    return f'"""{text}{chr(10) if chr(10) in text else ""}"""\n' if text else ""


def _imports(body: str) -> Iterator[str]:
    """Yield one line for each name that the classes use, as the modules of the async classes import it."""
    modules = {kind.__module__ for async_class in SyncProxy._classes for kind in async_class.__mro__[:-1]}
    lines = {name: line for module in sorted(modules) for name, line in _bound_names(module)}
    tree = ast.parse(body)
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines["Iterator"] = "from collections.abc import Iterator"
    for name in sorted(used - own - set(vars(builtins))):
        yield lines[name]


def _bound_names(module: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a module binds at its top level, each with the line that imports it."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    for node in [*body, *(inner for one in body if isinstance(one, ast.If) for inner in one.body)]:  # for type checkers
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"from {node.module} import {ast.unparse(alias)}"
        elif isinstance(node, ast.Import):
            yield from ((one.asname, f"import {ast.unparse(one)}") for one in node.names if one.asname)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, f"from {module} import {node.name}"
        elif isinstance(node, ast.Assign):
            yield from ((one.id, f"from {module} import {one.id}") for one in node.targets if isinstance(one, ast.Name))


def _format(text: str) -> str:
    """Return the text with its imports sorted and its lines broken by ruff."""
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PATH), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text
