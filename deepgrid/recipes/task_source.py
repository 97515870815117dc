"""The source text of a task, and its arguments as JSON: what travels to the node. The same task gives the same text.

Pickles of one function differ from process to process. A job is found by its key only if its definition is the same, so
a flow that is started again could not find its jobs by them.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any

from deepgrid.errors import InputError
from deepgrid.recipes.remote import MOST_CALL_BYTES, Resources, calling_workflow


def source_of(function: Callable[..., Any]) -> str:
    """Return the text of a function without decorators, after imports of the modules that it uses.

    Raises InputError if the function needs anything else of its module, or has no source.
    """
    name = getattr(function, "__name__", "task")
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        raise InputError(f"The source of the task {name} cannot be read.", next_step="Define it in a file.") from None
    if not isinstance(tree, ast.FunctionDef):
        raise InputError(f"The task {name} is not a plain function.", next_step="Use `def`, without `async`.")
    if tree.args.vararg or tree.args.kwarg:
        raise InputError(
            f"The task {name} takes any number of arguments, which do not travel to a node.",
            next_step="Name each argument, or take a list or a dict.",
        )
    imports = []
    for known, value in sorted(_used_globals(function).items()):
        if not isinstance(value, ModuleType):
            raise InputError(
                f"The task {name} uses {known}, which only exists here.",
                next_step="Pass it as an argument, or define it inside of the task.",
            )
        imports.append(f"import {value.__name__} as {known}")
    tree.decorator_list = []
    tree.returns = None
    tree.args.args[:0], tree.args.posonlyargs = tree.args.posonlyargs, []  # arguments are sent by name
    for argument in (*tree.args.args, *tree.args.kwonlyargs):
        argument.annotation = None  # a name that may only exist here
    nothing = ast.Constant(None)  # all arguments are sent, so defaults are not used there
    tree.args.defaults = [nothing for _ in tree.args.defaults]
    tree.args.kw_defaults = [value and nothing for value in tree.args.kw_defaults]
    return "\n".join([*imports, ast.unparse(tree)])


def _used_globals(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function uses from outside of it, by name, without Python's own names."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    loaded = {*_loaded_names(function.__code__), *function.__code__.co_freevars}
    return {name: known[name] for name in loaded if name in known}


def _loaded_names(code: CodeType) -> set[str]:
    """Return the global names that code and the functions in it load."""
    own = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    return own.union(*(_loaded_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def call_text(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON, in the same order each time. Raises InputError if they are not of JSON's types."""
    name = getattr(function, "__name__", "task")
    try:
        text = json.dumps(dict(arguments), sort_keys=True, allow_nan=False)
        _require_text_keys(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"An argument of the task {name} is not a value of JSON: a text, number, list, or dict with texts as keys.",
            next_step="Pass a name of the data, and read it inside of the task.",
        ) from None
    if len(text) > MOST_CALL_BYTES:
        raise InputError(f"The arguments of the task {name} have {len(text)} bytes; at most {MOST_CALL_BYTES} fit.")
    return text


def _require_text_keys(value: Any) -> None:
    """Raise TypeError for a dict with keys that are not text, because JSON would convert them to text."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise TypeError
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _require_text_keys(inner)


def task_workflow(
    function: Callable[..., Any], key: str, image: str | Mapping[str, Any] | None, resources: Resources, python: str
) -> dict[str, Any]:
    """Return the workflow of all calls of a task under a key. The arguments are the variable REMOTE_CALL."""
    variables = {
        "REMOTE_TOKEN": token_of(key),
        "REMOTE_FUNCTION": function.__name__,
        "REMOTE_SOURCE": source_of(function),
    }
    return calling_workflow(variables, image, resources, python)


def token_of(key: str) -> str:
    """Return the token that marks the result in a job's output. It separates the result from the task's own lines."""
    return hashlib.sha256(f"result {key}".encode()).hexdigest()[:32]
