"""Migrations of the services' database: each file in `versions` is one step, and alembic notes the last one.

`migrate` brings a database of any release since 561a647 to this one. `require_current` refuses other databases.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from deepgrid.errors import ConfigurationError

NOTED_IN = "grid_schema"  # the table with the last step, beside the services' tables
LOCK = 0x64656570  # any number that all releases share


def migrate(connection: Connection) -> None:
    """Do the steps that are missing, in the connection's transaction. Waits for another process that does so."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})
    if (found := _found(connection)) is not None and found not in _steps():
        raise _newer()
    settings = _config()
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


def is_empty(connection: Connection) -> bool:
    """Whether the database has no table of the services."""
    return not any(name.startswith("grid_") for name in inspect(connection).get_table_names())


def require_current(connection: Connection) -> None:
    """Raise ConfigurationError if the database is of an earlier or later release."""
    found, steps = _found(connection), _steps()
    if found == steps[0]:
        return
    if found is not None and found not in steps:
        raise _newer()
    raise ConfigurationError(
        "The services' database has the tables of an earlier release.",
        next_step="Stop all processes of the services, make a backup, and run `dps services migrate`.",
    )


def _newer() -> ConfigurationError:
    return ConfigurationError(
        "The services' database has the tables of a later release.",
        next_step="Install the release that migrated it, or restore the backup.",
    )


def _found(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": NOTED_IN}).get_current_revision()


def _steps() -> list[str]:
    """The steps of this release, newest first."""
    return [step.revision for step in ScriptDirectory.from_config(_config()).walk_revisions()]


def _config() -> Config:
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    return settings
