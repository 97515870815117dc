"""The sync class of an async one: what each method becomes.

A sync method has the name, the arguments and the docstring of the async one, and runs it. What the async one takes or
returns of async classes is turned into the sync ones by its annotation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.sync_client.values import TWINS, annotation, given, turned, words

INTERNAL = {"Connection"}  # a method that takes one of these is not for callers
LEFT_OUT = {"__del__", "__repr__"}  # of the base class, or of the async object
RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__", "__anext__": "__next__"}
CLOSING = {"close", "__aexit__"}
NOTEBOOK = re.compile(r"_repr_\w+_|_ipython_display_")
WAITING_HTML = "_html"  # async, in place of _repr_html_: what a class shows that has to read first
SECTION = re.compile(r" {4}# -- .*")
INDENT = " " * 8
VIEWS = {"JobView": ("_seen", "Seen")}  # classes that both sides share, and the property that they read

Function = ast.FunctionDef | ast.AsyncFunctionDef


def class_text(node: ast.ClassDef, lines: list[str]) -> str:
    """The text of the sync class.

    Args:
        node: The async class.
        lines: The lines of its module, for comments and docstrings as they are written.
    """
    sync, _ = TWINS[node.name]
    parts = [f"class {sync}({', '.join(_bases(node))}, of={node.name}):"]
    if docstring := _docstring(node, lines):
        parts.append(f"    {docstring}")
    parts += _own_object(node)
    section, last = "", node.lineno
    for member in node.body:
        if not isinstance(member, Function):
            continue
        section = next((line for line in lines[last : member.lineno] if SECTION.fullmatch(line)), section)
        last = member.end_lineno or last
        for text in _member(member, node, lines):
            parts += ["", *([section, ""] if section else []), text]
            section = ""
    return "\n".join(parts) + "\n"


def _bases(node: ast.ClassDef) -> list[str]:
    """The bases of the sync class: those of the async one, whose views both share, and one that is a Twin."""
    bases = [ast.unparse(base) for base in node.bases]
    twins = [TWINS[base][0] for base in bases if base in TWINS] or [f"Twin[{node.name}]"]
    return [base for base in bases if base not in TWINS] + twins


def _own_object(node: ast.ClassDef) -> list[str]:
    """The type of the async object where a base names another one, and what a view reads."""
    bases = [ast.unparse(base) for base in node.bases]
    typed = ["", f"    _async: {node.name}"] if any(base in TWINS for base in bases) else []
    views = [VIEWS[base] for base in bases if base in VIEWS]
    return typed + [
        f"\n    @property\n    def {name}(self) -> {type_}:\n        return self._async.{name}" for name, type_ in views
    ]


def _member(function: Function, owner: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    name = function.name
    if name == "__init__":
        if ast.get_docstring(function):  # else only a Grid makes its objects
            body = f"self._stand_for({owner.name}({_passed(function)}))"
            yield f"{_head(function, name)}\n{INDENT}{_docstring(function, lines)}\n{INDENT}{body}"
        yield from _attributes(function, owner)
    elif _is_public(name) and name not in LEFT_OUT and not _is_internal(function):
        decorators = "".join(f"    @{ast.unparse(one)}\n" for one in function.decorator_list)
        docstring = f"{INDENT}{text}\n" if (text := _docstring(function, lines)) else ""
        body = "..." if "overload" in _decorators(function) else _body(function, owner)
        yield f"{decorators}{_head(function, RENAMED.get(name, name))}\n{docstring}{INDENT}{body}"


def _head(function: Function, name: str) -> str:
    returned = f" -> {annotation(function.returns)}" if function.returns is not None else ""
    arguments = ast.unparse(_with_turned_annotations(function.args))
    return f"    def {name}({arguments}){returned}:"


def _with_turned_annotations(arguments: ast.arguments) -> ast.arguments:
    copy = ast.parse(f"def f({ast.unparse(arguments)}): ...").body[0]
    assert isinstance(copy, ast.FunctionDef)
    for one in ast.walk(copy.args):
        if isinstance(one, ast.arg) and one.annotation is not None:
            one.annotation = ast.parse(annotation(one.annotation), mode="eval").body
    return copy.args


def _body(function: Function, owner: ast.ClassDef) -> str:
    """The statement that runs the async method."""
    name, decorators = function.name, _decorators(function)
    if name == "_repr_html_" and any(isinstance(one, Function) and one.name == WAITING_HTML for one in owner.body):
        return f"return self._run(self._async.{WAITING_HTML}())"
    waits = isinstance(function, ast.AsyncFunctionDef)
    if "classmethod" in decorators:
        if waits:
            raise SystemExit(f"{owner.name}.{name}: an async classmethod has no sync form.")
        return f"return {turned(function.returns, f'{owner.name}.{name}({_passed(function)})', maker='cls')}"
    call = f"self._async.{name}" + ("" if "property" in decorators else f"({_passed(function)})")
    if _yields(function):
        call = f"self._iterate({call})"
    elif name in CLOSING:
        return f"self._close({call})"
    elif waits:
        call = f"self._run({call})"
    if function.returns is None or ast.unparse(function.returns) == "None":
        return call
    return f"return {turned(function.returns, call)}"


def _yields(function: Function) -> bool:
    """Whether it returns an async iterator."""
    return function.returns is not None and ast.unparse(function.returns).startswith(
        ("AsyncIterator", "AsyncGenerator")
    )


def _passed(function: Function) -> str:
    """The arguments of the call of the async method."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if "staticmethod" not in _decorators(function):
        positional = positional[1:]
    passed = [given(one) for one in positional]
    if arguments.vararg is not None:
        passed.append(f"*{given(arguments.vararg)}")
    passed += [f"{one.arg}={given(one)}" for one in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        passed.append(f"**{given(arguments.kwarg)}")
    return ", ".join(passed)


def _attributes(init: Function, owner: ast.ClassDef) -> Iterator[str]:
    """A property for each public attribute, which the class describes under "Attributes:"."""
    described = dict(re.findall(r"^    (\w+): (.+(?:\n {8,}.+)*)", ast.get_docstring(owner) or "", re.M))
    types = {one.arg: one.annotation for one in [*init.args.args, *init.args.kwonlyargs]}
    for node in ast.walk(init):
        if isinstance(node, ast.Assign):
            target, type_ = node.targets[0], types.get(node.value.id) if isinstance(node.value, ast.Name) else None
        elif isinstance(node, ast.AnnAssign):
            target, type_ = node.target, node.annotation
        else:
            continue
        if isinstance(target, ast.Attribute) and _is_public(target.attr):
            if type_ is None:
                raise SystemExit(f"{owner.name}.{target.attr} has no annotation.")
            meaning = re.sub(r"\s+", " ", words(described.get(target.attr, f"The {target.attr}.")))
            value = turned(type_, f"self._async.{target.attr}")
            head = f"    @property\n    def {target.attr}(self) -> {annotation(type_)}:"
            yield f'{head}\n{INDENT}"""{meaning}"""\n{INDENT}return {value}'


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__")) or bool(NOTEBOOK.fullmatch(name))


def _is_internal(function: Function) -> bool:
    types = [one.annotation for one in ast.walk(function.args) if isinstance(one, ast.arg) and one.annotation]
    return bool({node.id for type_ in types for node in ast.walk(type_) if isinstance(node, ast.Name)} & INTERNAL)


def _decorators(function: Function) -> set[str]:
    return {ast.unparse(one) for one in function.decorator_list}


def _docstring(node: Function | ast.ClassDef, lines: list[str]) -> str:
    """The docstring as it is written, with the words of the sync classes; empty if there is none."""
    if ast.get_docstring(node) is None:
        return ""
    first = node.body[0]
    text = "\n".join(lines[first.lineno - 1 : first.end_lineno])
    return words(text.lstrip())
