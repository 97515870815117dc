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

NOTED_IN = "grid_schema"  # the table with the last step, in addition to the services' tables
RESTORING = "grid_restoring"  # a table that exists while a backup is restored
LOCK = 0x64656570  # any number that all releases share


def migrate(connection: Connection) -> None:
    """Do the steps that are missing, in the connection's transaction. Waits for another process that does so."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})
    if (found := _current_revision(connection)) is not None and found not in _steps():
        raise _newer()
    settings = _config()
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


def is_empty(connection: Connection) -> bool:
    """Return whether the database has no table of the services."""
    return not any(name.startswith("grid_") for name in inspect(connection).get_table_names())


def require_current(connection: Connection) -> None:
    """Raise ConfigurationError if the database is of an earlier or later release."""
    require_whole(connection)
    found, steps = _current_revision(connection), _steps()
    if found == steps[0]:
        return
    if found is not None and found not in steps:
        raise _newer()
    raise ConfigurationError(
        "The services' database has the tables of an earlier release.",
        next_step="Stop all processes of the services, make a backup, and run `dps services migrate`.",
    )


def require_whole(connection: Connection) -> None:
    """Raise ConfigurationError if a restore has started but not ended."""
    if RESTORING in inspect(connection).get_table_names():
        raise ConfigurationError(
            "A restore of the services' database has not finished.",
            next_step="If none is running, make a new empty database, and run `dps services restore` again.",
        )


def last_step(connection: Connection) -> str:
    """Return the last step of the database. Raises ConfigurationError if this release cannot back it up."""
    require_whole(connection)
    found = _current_revision(connection)
    if found is None:
        raise ConfigurationError(
            "The services' database has no tables, or the tables of an early release.",
            next_step="Check the URL of the database, and run `dps services migrate`.",
        )
    require_known(found)
    return found


def require_known(step: str) -> None:
    """Raise ConfigurationError if a later release made this step."""
    if step not in _steps():
        raise _newer()


def begin_restore(connection: Connection) -> None:
    """Mark an empty database, so that nothing uses half of a restore. Raises ConfigurationError if it is not empty.

    A mark alone is left by a restore that failed early, which may be repeated.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})
    if any(name.startswith("grid_") and name != RESTORING for name in inspect(connection).get_table_names()):
        raise ConfigurationError(
            "The services' database is not empty.", next_step="Make a new empty database, and restore into that."
        )
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {RESTORING} (id integer)"))


def end_restore(connection: Connection) -> None:
    """Migrate the restored tables, and remove the mark."""
    connection.execute(text(f"DROP TABLE IF EXISTS {RESTORING}"))
    migrate(connection)
    require_current(connection)


def _newer() -> ConfigurationError:
    return ConfigurationError(
        "The services' database has the tables of a later release.",
        next_step="Install the release that migrated it, or restore the backup.",
    )


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": NOTED_IN}).get_current_revision()


def _steps() -> list[str]:
    """Return the steps of this release, newest first."""
    return [step.revision for step in ScriptDirectory.from_config(_config()).walk_revisions()]


def _config() -> Config:
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    return settings
