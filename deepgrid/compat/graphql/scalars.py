"""Values of variables as existing clients send them: the original's server takes a number where a text is wanted, and
the digits of a whole number as that number.
"""

from __future__ import annotations

import re
from typing import Any

from graphql import GraphQLInt, GraphQLString

_DIGITS = re.compile(r"[-+]?[0-9]{1,10}", re.ASCII)
_parse_int, _parse_text = GraphQLInt.coerce_input_value, GraphQLString.coerce_input_value


def whole_number(value: Any) -> Any:
    """Return the value of a variable of type Int. Raises GraphQLError."""
    return _parse_int(int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value)


def text(value: Any) -> Any:
    """Return the value of a variable of type String. Raises GraphQLError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _parse_text(str(value) if is_number else value)
