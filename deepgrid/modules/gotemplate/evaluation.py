"""Fills in a parsed template, and records which line of it each line of the result comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deepgrid.modules.gotemplate import functions, syntax
from deepgrid.modules.gotemplate.lexer import Text
from deepgrid.modules.gotemplate.lookup import Unfit, field_in, is_true, kind_of, text_of
from deepgrid.modules.gotemplate.parser import parse
from deepgrid.modules.template import Filled, TemplateFault


@dataclass(frozen=True)
class TemplateLimits:
    """Bounds on one template.

    steps: nodes and commands that are evaluated.
    characters: of the result; functions may make `FACTOR` times as many on the way.
    """

    steps: int = 200_000
    characters: int = 256 * 1024


FACTOR = 16
_NOTHING = object()  # a pipe that has no value yet


def fill_in_go(text: str, root: Any, limits: TemplateLimits) -> Filled:
    """Return the result of a template of Go's syntax. `root` is the value of `.` and `$`. Raises TemplateFault."""
    evaluation = _Evaluation(root, limits)
    evaluation.body(parse(text), root)
    return evaluation.result.filled()


class _Evaluation:
    def __init__(self, root: Any, limits: TemplateLimits) -> None:
        self.result = _Result(limits.characters)
        self._variables: list[tuple[str, Any]] = [("$", root)]
        self._limits = limits
        self._steps = 0
        self._made = 0

    def body(self, nodes: Sequence[syntax.Node], dot: Any) -> None:
        for node in nodes:
            if isinstance(node, Text):
                self._count(node.line)
                self.result.write(node.text, node.line, many_lines=True)
            elif isinstance(node, syntax.Output):
                self._output(node, dot)
            else:
                known = len(self._variables)
                self._if(node, dot) if isinstance(node, syntax.If) else self._range(node, dot)
                del self._variables[known:]

    def _output(self, node: syntax.Output, dot: Any) -> None:
        value = self._assigned(node.pipe, dot)
        if node.pipe.variables:
            return
        try:
            self.result.write(text_of(value), node.pipe.line, many_lines=False)
        except Unfit as error:
            raise TemplateFault(f"template: {error}", node.pipe.line) from None

    def _if(self, node: syntax.If, dot: Any) -> None:
        self.body(node.body if is_true(self._assigned(node.pipe, dot)) else node.otherwise, dot)

    def _range(self, node: syntax.Range, dot: Any) -> None:
        values = self._value(node.pipe, dot)
        if is_true(values) and not isinstance(values, tuple | list):
            raise TemplateFault(f"template: {kind_of(values)} cannot be iterated over", node.pipe.line)
        for index, value in enumerate(values if is_true(values) else ()):
            known = len(self._variables)
            names = node.pipe.variables
            for name, item in zip(names, (index, value) if len(names) > 1 else (value,), strict=False):
                self._set(name, item, declares=node.pipe.declares)
            self._count(node.pipe.line)
            self.body(node.body, value)
            del self._variables[known:]
        if not is_true(values):
            self.body(node.otherwise, dot)

    def _assigned(self, pipe: syntax.Pipe, dot: Any) -> Any:
        value = self._value(pipe, dot)
        for name in pipe.variables:
            self._set(name, value, declares=pipe.declares)
        return value

    def _set(self, name: str, value: Any, *, declares: bool) -> None:
        if declares:
            self._variables.append((name, value))
        else:
            self._variables[self._position(name)] = (name, value)

    def _position(self, name: str) -> int:
        return next(at for at in range(len(self._variables) - 1, -1, -1) if self._variables[at][0] == name)

    def _value(self, pipe: syntax.Pipe, dot: Any) -> Any:
        value: Any = _NOTHING
        for command in pipe.commands:
            self._count(command.line)
            try:
                value = self._command(command, dot, value)
            except Unfit as error:
                raise TemplateFault(f"template: {error}", command.line) from None
        return value

    def _command(self, command: syntax.Command, dot: Any, piped: Any) -> Any:
        first, *rest = command.operands
        if not isinstance(first, syntax.Function):
            return self._operand(first, dot)
        if first.name in functions.LAZY:
            return self._lazy(first.name, rest, dot, piped)
        arguments = [self._operand(one, dot) for one in rest]
        made = functions.call(first.name, arguments if piped is _NOTHING else [*arguments, piped])
        if isinstance(made, str):
            self._made += len(made)
            if self._made > FACTOR * self._limits.characters:
                raise Unfit("makes too much text on the way")
        return made

    def _lazy(self, name: str, operands: Sequence[syntax.Operand], dot: Any, piped: Any) -> Any:
        """`and` and `or`: the first value that decides, else the last."""
        values = []
        for operand in operands:
            values.append(self._operand(operand, dot))
            if is_true(values[-1]) == (name == "or"):
                return values[-1]
        return functions.call(name, values if piped is _NOTHING else [*values, piped])

    def _operand(self, operand: syntax.Operand, dot: Any) -> Any:
        if isinstance(operand, syntax.Literal):
            return operand.value
        if isinstance(operand, syntax.Dot):
            return dot
        if isinstance(operand, syntax.Variable):
            return self._variables[self._position(operand.name)][1]
        if isinstance(operand, syntax.Fields):
            value = self._operand(operand.of, dot)
            for name in operand.names:
                value = field_in(value, name)
            return value
        if isinstance(operand, syntax.Pipe):
            return self._value(operand, dot)
        return functions.call(operand.name, [])

    def _count(self, line: int) -> None:
        self._steps += 1
        if self._steps > self._limits.steps:
            raise TemplateFault(f"template: takes more than {self._limits.steps} steps", line)


class _Result:
    """Collects the text, and for each line of it the template's line that its first visible character is from."""

    def __init__(self, most: int) -> None:
        self._parts: list[str] = []
        self._lines: list[int] = []
        self._first = 1
        self._origin: int | None = None
        self._most = most
        self._size = 0

    def write(self, text: str, line: int, *, many_lines: bool) -> None:
        """Add text from this line of the template, and with `many_lines` from those below."""
        self._size += len(text)
        if self._size > self._most:
            raise TemplateFault(f"becomes larger than {self._most // 1024} KiB")
        self._parts.append(text)
        for number, part in enumerate(text.split("\n")):
            here = line + number if many_lines else line
            if number:
                self._lines.append(self._origin or self._first)
                self._origin, self._first = None, here
            if self._origin is None and part.strip():
                self._origin = here

    def filled(self) -> Filled:
        return Filled("".join(self._parts), (*self._lines, self._origin or self._first))
