"""The sync form of annotations, of expressions with such an annotation, and of docstrings."""

from __future__ import annotations

import ast
import re

# Async class: its sync class, and the module of both.
TWINS = {
    "AsyncGrid": ("Grid", "grid"),
    "AsyncJob": ("Job", "job"),
    "AsyncJobSet": ("JobSet", "job_set"),
    "AsyncWallet": ("Wallet", "wallet"),
}
SYNC_OF = {name: sync for name, (sync, _) in TWINS.items()} | {
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Iterator",
    "AsyncIterable": "Iterable",
}
IN_DOCSTRINGS = (
    (re.compile(r"\b([Aa])n(\s+`?)(?=Async(?:Grid|Job|JobSet|Wallet)\b)"), r"\1\2"),
    (re.compile(r"\bAsync(Grid|JobSet|Job|Wallet)\b"), r"\1"),
    (re.compile(r"\basync (with|for|def)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
)


def words(docstring: str) -> str:
    """A docstring with the names and the syntax of the sync classes."""
    for pattern, sync in IN_DOCSTRINGS:
        docstring = pattern.sub(sync, docstring)
    return docstring


def annotation(node: ast.expr) -> str:
    """The annotation with the sync classes in place of the async ones."""
    text = re.sub(r"AsyncGenerator\[(.+), None\]", r"AsyncIterator[\1]", ast.unparse(node))
    return re.sub(r"\w+", lambda name: SYNC_OF.get(name[0], name[0]), text)


def given(argument: ast.arg) -> str:
    """An argument as the async method takes it."""
    async_names = _twins_in(argument.annotation)
    if not async_names:
        return argument.arg
    if isinstance(argument.annotation, ast.Name):
        return f"{argument.arg}._async"
    items = _items(argument.annotation)
    if items is not None and isinstance(items, ast.Name):
        return f"[one._async for one in {argument.arg}]"
    raise SystemExit(f"No rule for an argument that is {ast.unparse(argument.annotation or ast.Constant(None))}.")


def turned(node: ast.expr | None, value: str, maker: str = "type(self)") -> str:
    """An expression for what the sync method returns, from one for what the async method returns.

    Args:
        node: Annotation of the async value.
        value: Expression of the async value.
        maker: The class that `Self` means.
    """
    if isinstance(node, ast.Name) and node.id == "Self":
        return f"{maker}._of({value})"
    if not _twins_in(node):
        return value
    if isinstance(node, ast.Name):
        return f"{SYNC_OF[node.id]}._of({value})"
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value is None:
        return f"None if (one := {value}) is None else {turned(node.left, 'one', maker)}"
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name) and not _twins_in(node.right):
        taken = value if value == "one" else f"one := {value}"
        return f"{turned(node.left, 'one', maker)} if isinstance({taken}, {node.left.id}) else one"
    if isinstance(node, ast.Subscript) and (items := _items(node)) is not None:
        each = f"{turned(items, 'one', maker)} for one in {value}"
        container = ast.unparse(node.value)
        return {"tuple": f"tuple({each})", "Iterator": f"({each})", "AsyncIterator": f"({each})"}.get(
            container, f"[{each}]"
        )
    raise SystemExit(f"No rule for a value that is {ast.unparse(node or ast.Constant(None))}.")


def _items(node: ast.expr | None) -> ast.expr | None:
    """What a list, a tuple of any length or an iterator holds."""
    if not isinstance(node, ast.Subscript):
        return None
    if isinstance(node.slice, ast.Tuple):
        first, *rest = node.slice.elts
        return first if len(rest) == 1 and ast.unparse(rest[0]) == "..." else None
    return node.slice


def _twins_in(node: ast.expr | None) -> set[str]:
    return set() if node is None else {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & TWINS.keys()
