"""Every verb of `dps` with its arguments and options, read from the commands themselves.

`mkdocs-click` reads click's commands. Typer has its own copy of click, and these verbs are loaded when they run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from deepgrid.cli.lazy import LazyCommand, as_command
from deepgrid.cli.main import app
from tools.site.tables import code, prose, table

KINDS = {int: "INTEGER", float: "NUMBER", Path: "PATH"}


def verbs(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the real command of each verb, without lines for groups."""
    command = command or typer.main.get_command(app)
    if isinstance(command, LazyCommand):
        command = as_command(command._load())
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from verbs(child, (*path, name))


def reference() -> str:
    """Return a section per verb."""
    return "\n\n".join(_section(path, command) for path, command in verbs())


def _section(path: tuple[str, ...], command: Any) -> str:
    name = " ".join(("dps", *path))
    parameters = [one for one in command.params if not one.hidden]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    usage = " ".join([name, *(_placeholder(one) for one in arguments), "[OPTIONS]"])
    parts = [f"### {name}", _prose(command.help), f"```text\n{usage}\n```"]
    rows = [(_names(one), _meaning(one), _default(one)) for one in parameters]
    return "\n\n".join([*parts, table(("option", "means", "default"), rows)] if rows else parts)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return code(_placeholder(parameter))
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return names
    kind = KINDS.get(parameter.type_descriptor.annotation, "TEXT")
    return f"{names} {code(parameter.metavar or kind)}"


def _meaning(parameter: Any) -> str:
    variable = f" Environment: `{parameter.envvar}`." if parameter.envvar else ""
    return f"{_prose(parameter.help)}{variable}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter.default
    return "" if value is None or value is False or callable(value) or value == [] else code(value)


def _prose(help_text: str | None) -> str:
    return "\n\n".join(prose(part) for part in (help_text or "").replace("\b", "").split("\n\n"))
