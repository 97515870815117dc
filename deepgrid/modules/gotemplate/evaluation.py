"""Fills in a parsed template, and records which line of it each line of the result comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepgrid.modules.gotemplate import functions, syntax
from deepgrid.modules.gotemplate.lexer import Text
from deepgrid.modules.gotemplate.lookup import Unfit, field_in, is_list, is_true, kind_of, text_of, weight_of
from deepgrid.modules.gotemplate.parser import parse
from deepgrid.modules.template import Filled, TemplateFault


@dataclass(frozen=True)
class TemplateLimits:
    """Bounds on one template.

    steps: nodes and commands that are evaluated.
    characters: of the result; functions may make `FACTOR` times as many in between, and read `FACTOR` times as many.
    """

    steps: int = 200_000
    characters: int = 256 * 1024


FACTOR = 16
MOST_DEEP = 64  # nested bodies, including named templates
_NO_VALUE = "<no value>"  # how Go prints a function's nil; a field's nil is <nil>
_NOTHING = object()  # a pipe that has no value yet


def fill_in_go(text: str, root: Any, limits: TemplateLimits) -> Filled:
    """Return the result of a template of Go's syntax. `root` is the value of `.` and `$`. Raises TemplateFault."""
    template = parse(text)
    evaluation = _Evaluation(root, limits, template.named)
    evaluation.body(template.body, root)
    return evaluation.result.filled()


class _Left(Exception):
    """A round of a loop ends; with `is_break` the whole loop."""

    def __init__(self, *, is_break: bool) -> None:
        super().__init__()
        self.is_break = is_break


class _Evaluation:
    def __init__(self, root: Any, limits: TemplateLimits, named: Mapping[str, Sequence[syntax.Node]]) -> None:
        self._named, self._depth = named, 0
        self.result = _Result(limits.characters)
        self._variables: list[tuple[str, Any]] = [("$", root)]
        self._limits = limits
        self._steps = self._read = self._made = 0

    def body(self, nodes: Sequence[syntax.Node], dot: Any) -> None:
        self._depth += 1
        for node in nodes:
            if isinstance(node, Text):
                self._count(node.line)
                self.result.write(node.text, node.line, many_lines=True)
            elif isinstance(node, syntax.Output):
                self._output(node, dot)
            else:
                known = len(self._variables)
                self._control(node, dot)
                del self._variables[known:]
        self._depth -= 1

    def _control(self, node: syntax.If | syntax.Range | syntax.With | syntax.Call | syntax.Leave, dot: Any) -> None:
        if isinstance(node, syntax.Leave):
            raise _Left(is_break=node.is_break)
        if isinstance(node, syntax.Call):
            self._call(node, dot)
        elif isinstance(node, syntax.Range):
            self._range(node, dot)
        else:
            value = self._assigned(node.pipe, dot)
            within = value if isinstance(node, syntax.With) and is_true(value) else dot
            self.body(node.body if is_true(value) else node.otherwise, within)

    def _call(self, node: syntax.Call, dot: Any) -> None:
        """Fill in a named template: its `.` and `$` are the value that it is given."""
        if node.name not in self._named:
            raise TemplateFault(f"template: {node.name[:40]!r} is not defined", node.line)
        if self._depth > MOST_DEEP:
            raise TemplateFault(f"template: templates use each other deeper than {MOST_DEEP} levels", node.line)
        value = None if node.pipe is None else self._value(node.pipe, dot)
        self._count(node.line)
        outside, self._variables = self._variables, [("$", value)]
        self.body(self._named[node.name], value)
        self._variables = outside

    def _output(self, node: syntax.Output, dot: Any) -> None:
        value = self._assigned(node.pipe, dot)
        if node.pipe.variables:
            return
        last = node.pipe.commands[-1].operands[0]
        if value is None and isinstance(last, syntax.Function) and last.name not in functions.LAZY:
            value = _NO_VALUE
        try:
            self.result.write(text_of(value), node.pipe.line, many_lines=False)
        except Unfit as error:
            raise TemplateFault(f"template: {error}", node.pipe.line) from None

    def _range(self, node: syntax.Range, dot: Any) -> None:
        pairs = self._pairs(node.pipe, dot)
        depth, known = self._depth, len(self._variables)
        for index, value in pairs:
            names = node.pipe.variables
            for name, item in zip(names, (index, value) if len(names) > 1 else (value,), strict=False):
                self._set(name, item, declares=node.pipe.declares)
            self._count(node.pipe.line)
            try:
                self.body(node.body, value)
            except _Left as left:
                self._depth = depth
                if left.is_break:
                    break
            finally:
                del self._variables[known:]
        if not pairs:
            self.body(node.otherwise, dot)

    def _pairs(self, pipe: syntax.Pipe, dot: Any) -> Sequence[tuple[Any, Any]]:
        """Return what a loop goes over, with indices or keys."""
        values = self._value(pipe, dot)
        if isinstance(values, dict):
            return [(key, values[key]) for key in sorted(values)]
        if isinstance(values, int) and not isinstance(values, bool):
            return [(number, number) for number in range(min(values, self._limits.steps + 1))]
        if is_true(values) and not is_list(values):
            raise TemplateFault(f"template: {kind_of(values)} cannot be iterated over", pipe.line)
        return list(enumerate(values)) if is_true(values) else []

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
        return self._result_of(first.name, arguments if piped is _NOTHING else [*arguments, piped])

    def _result_of(self, name: str, arguments: list[Any]) -> Any:
        """Return the result of a function, and count what it reads and makes."""
        most_made = FACTOR * self._limits.characters
        self._read += weight_of(arguments, FACTOR * most_made - self._read)
        made = functions.call(name, arguments)
        self._made += weight_of(made, most_made - self._made)
        return made

    def _lazy(self, name: str, operands: Sequence[syntax.Operand], dot: Any, piped: Any) -> Any:
        """`and` and `or`: the first value that decides, or the last value."""
        values = []
        for operand in operands:
            values.append(self._operand(operand, dot))
            if is_true(values[-1]) == (name == "or"):
                return values[-1]
        return self._result_of(name, values if piped is _NOTHING else [*values, piped])

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
        return self._result_of(operand.name, [])

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
