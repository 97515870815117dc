"""Connections to PostgreSQL, and the errors of its driver that SQLAlchemy lets through."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

DRIVER_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


class NoConnection(SQLAlchemyError):
    """PostgreSQL does not take a connection: it is away, starts, or stops. Its text names the driver's error."""


async def connect(*args: Any, **settings: Any) -> asyncpg.Connection:
    """Connect by the driver. SQLAlchemy translates errors of statements only, so this raises NoConnection."""
    try:
        return await asyncpg.connect(*args, **settings)
    except DRIVER_ERRORS as error:
        raise NoConnection(type(error).__name__) from None
    except TypeError as error:
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        parameter = found[1] if found else "with another form"
        raise NoConnection(f"its URL has a parameter that the driver does not know: {parameter}") from None
