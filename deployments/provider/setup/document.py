"""The settings file of a provider: TOML with comments, which a person may edit and which a rewrite keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from blocks import Provider, SlurmLogin
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.files.private_files import replace_file
from deployments.provider.setup.provider_questions import BY_KEY, Question

ACCOUNT_TABLE = "login.account_table"
HEAD = "Settings of a provider's cluster, written by `dps provider init`. It holds paths, never a secret."
SECTIONS = {
    "prefect": "The provider's own Prefect server.",
    "grid": "The grid, and the key that signs claims and is paid.",
    "login": "The login node. Every other field of the block SlurmLogin can be added here, too.",
    "prices": "In credits, as text: TOML's numbers are not exact.",
    "labels": 'Labels that customers can ask for, such as region = "ch".',
    "supervisor": "The supervisor. Every other field of the block Provider can be added here, too.",
}
ELSEWHERE = {"cluster", "grid", "wallet", "login", "services", "labels", "benchmarks"}
FIELDS = {
    "prefect": {"api_url", "login_file", "notify"},
    "grid": {"address_book", "key_file"},
    "prices": {"cpu", "memory_mb", "gpu"},
    "login": set(SlurmLogin.model_fields),
    "supervisor": {name for name in Provider.model_fields if name not in ELSEWHERE and not name.endswith("_minute")},
}


class Document:
    """A settings file at `path`, which may not exist yet."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.before = text
        try:
            self._toml = tomlkit.parse(text)
        except TOMLKitError as error:
            raise ConfigurationError(f"{path} is not a TOML file: {error}.") from None
        if not text:
            self._toml.add(tomlkit.comment(HEAD))
        self._check_names()

    @classmethod
    def read(cls, path: Path) -> Document:
        """Return the file, or an empty one if there is none. Raises ConfigurationError if it cannot be used."""
        try:
            return cls(path, path.read_text("utf-8"))
        except FileNotFoundError:
            return cls(path, "")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}.") from None

    @property
    def text(self) -> str:
        return tomlkit.dumps(self._toml)

    def values(self) -> dict[str, Any]:
        """Return all settings as plain values, by section."""
        values: dict[str, Any] = self._toml.unwrap()
        return values

    def answers(self) -> dict[str, str]:
        """Return the settings that are questions or decide which apply, as a person types them, by key."""
        found = {}
        for key in (*BY_KEY, ACCOUNT_TABLE):
            section, _, name = key.rpartition(".")
            inside = self._toml.get(section, {}) if section else self._toml
            if name in inside:
                found[key] = _value_text(inside[name])
        return found

    def set(self, key: str, text: str) -> None:
        """Set one value and keep the comments. Raises InputError for a name that no section has."""
        section, _, name = key.rpartition(".")
        question = BY_KEY.get(key)
        if question is not None and question.kind is dict:
            self._replace(key, _pairs(text))
            return
        if question is None and section != "labels" and name not in FIELDS.get(section, ()):
            raise InputError(f"There is no setting {key!r}.", next_step="Settings are written SECTION.NAME=VALUE.")
        inside = self._section(section) if section else self._toml
        value = _parse_value(question, section, text)
        if name in inside and inside[name] == value:
            return
        if question is not None and name not in inside:
            inside.add(tomlkit.comment(question.words))
        if name in inside:
            inside[name] = value
        else:
            inside.add(name, value)

    def _replace(self, section: str, wanted: dict[str, str]) -> None:
        """Make `wanted` all that a section has. Comments of what stays are kept."""
        if not wanted and section not in self._toml:
            return
        inside = self._section(section)
        for name in inside.keys() - wanted.keys():
            inside.remove(name)
        for name, value in wanted.items():
            if inside.get(name) != value:
                inside[name] = value

    def write(self) -> None:
        """Replace the file atomically. Only its owner can read it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, self.text.encode())

    def _section(self, name: str) -> Table:
        if name not in self._toml:
            table = tomlkit.table()
            table.comment(SECTIONS[name])
            self._toml.add(tomlkit.nl())
            self._toml.add(name, table)
        section = self._toml[name]
        if not isinstance(section, Table):
            raise ConfigurationError(f"{self.path}: {name} must be a section.")
        return section

    def _check_names(self) -> None:
        """Raise ConfigurationError for a misspelt name. Otherwise its default would be used silently."""
        for name, inside in self._toml.unwrap().items():
            if name == "cluster" or name == "labels":
                continue
            if name not in FIELDS or not isinstance(inside, dict):
                raise ConfigurationError(f"{self.path}: there is no section {name!r}.")
            for field in inside.keys() - FIELDS[name]:
                raise ConfigurationError(f"{self.path}: {name} has no setting {field!r}.")


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={one}" for name, one in value.items())
    return str(value)


def _pairs(text: str) -> dict[str, str]:
    """`region=ch,network=ethernet` as a dictionary. Raises InputError."""
    found = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in one.partition("="))
        if not (name and equals and value):
            raise InputError(f"{one[:40]!r} is not a label.", next_step="Write NAME=VALUE, separated by commas.")
        found[name] = value
    return found


def _parse_value(question: Question | None, section: str, text: str) -> Any:
    if question is None:
        if section == "labels":
            return text
        try:
            return tomlkit.value(text)  # a list, a table, a number
        except TOMLKitError:
            return text
    if question.kind is bool:
        if text.lower() not in ("yes", "no", "true", "false", "y", "n"):
            raise InputError(f"{text[:40]!r} is neither yes nor no.")
        return text.lower() in ("yes", "true", "y")
    if question.kind is int:
        if not (text.isascii() and text.isdigit()):
            raise InputError(f"{text[:40]!r} is not a whole number.")
        return int(text)
    return text
