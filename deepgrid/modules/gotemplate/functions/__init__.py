"""The functions of templates: Go's own, and the pure functions of sprig. `FUNCTIONS` has them by name.

None reaches anything but its arguments: no clock, no chance, no environment, no file. `and` and `or` evaluate only what
they need, so the evaluation itself has them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from deepgrid.modules.gotemplate.functions.collections import COLLECTIONS
from deepgrid.modules.gotemplate.functions.encodings import ENCODINGS
from deepgrid.modules.gotemplate.functions.logic import LOGIC
from deepgrid.modules.gotemplate.functions.numbers import NUMBERS
from deepgrid.modules.gotemplate.functions.semantic_versions import VERSIONS
from deepgrid.modules.gotemplate.functions.texts import TEXTS
from deepgrid.modules.gotemplate.lookup import Unfit

LAZY = ("and", "or")
_RAISING = (  # they have a variant that returns Go's error; here a fault ends the template in any case
    "append", "chunk", "compact", "deepCopy", "first", "fromJson", "has", "initial", "last", "merge", "mergeOverwrite",
    "prepend", "push", "rest", "reverse", "slice", "toJson", "toPrettyJson", "toRawJson", "uniq", "without",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {**LOGIC, **TEXTS, **NUMBERS, **COLLECTIONS, **ENCODINGS, **VERSIONS}
FUNCTIONS |= {f"must{name[0].upper()}{name[1:]}": FUNCTIONS[name] for name in _RAISING}


def _arity(function: Callable[..., Any]) -> tuple[int, int | None]:
    """Return the least and the largest number of arguments; None if there is no largest one."""
    taken = signature(function).parameters.values()
    plain = [one for one in taken if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    takes_any = any(one.kind is Parameter.VAR_POSITIONAL for one in taken)
    return sum(one.default is Parameter.empty for one in plain), None if takes_any else len(plain)


_ARITIES = {name: _arity(function) for name, function in FUNCTIONS.items()}


def call(name: str, arguments: list[Any]) -> Any:
    """Return the result of a function. Raises Unfit."""
    least, most = _ARITIES[name]
    if not least <= len(arguments) <= (len(arguments) if most is None else most):
        wanted = str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise Unfit(f"{name} takes {wanted} arguments, not {len(arguments)}")
    try:
        return FUNCTIONS[name](*arguments)
    except Unfit as error:
        raise Unfit(f"{name}: {error}") from None
    except OverflowError:
        raise Unfit(f"{name}: the result is too large") from None
    except ValueError:
        raise Unfit(f"{name}: a value is given for which it has no result") from None
