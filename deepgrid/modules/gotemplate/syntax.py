"""The parts of a parsed template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deepgrid.modules.gotemplate.lexer import Text


@dataclass(frozen=True)
class Literal:
    """A text, number or truth value, or nil."""

    value: str | int | float | bool | None


@dataclass(frozen=True)
class Dot:
    """The current value."""


@dataclass(frozen=True)
class Variable:
    """A variable; `$` is the root."""

    name: str


@dataclass(frozen=True)
class Function:
    """The name of a function."""

    name: str


@dataclass(frozen=True)
class Fields:
    """Fields of a value, one inside the other."""

    of: Operand
    names: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """An operand, or a function with its arguments."""

    operands: tuple[Operand, ...]
    line: int


@dataclass(frozen=True)
class Pipe:
    """Commands in a pipeline: each gets the result of the previous one as its last argument."""

    commands: tuple[Command, ...]
    line: int
    variables: tuple[str, ...] = ()
    declares: bool = True


Operand = Literal | Dot | Variable | Function | Fields | Pipe


@dataclass(frozen=True)
class Output:
    """An action that prints its value, or only sets a variable."""

    pipe: Pipe


@dataclass(frozen=True)
class If:
    """A condition; `else if` is a condition in `otherwise`."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Range:
    """A loop; `otherwise` is used if there is nothing to iterate over."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True)
class With:
    """A body with another current value; `otherwise` is used if that is empty."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Call:
    """The use of a named template, with its current value; None is nil."""

    name: str
    pipe: Pipe | None
    line: int


@dataclass(frozen=True)
class Leave:
    """The end of one round of a loop, or with `is_break` of the whole loop."""

    is_break: bool


Node = Text | Output | If | Range | With | Call | Leave


@dataclass(frozen=True)
class Template:
    """A whole template, and the named ones that it defines."""

    body: tuple[Node, ...]
    named: Mapping[str, tuple[Node, ...]]
