"""How much of a customer's files the grid keeps, and for how long. The operator's file says so, for all or for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from eth_utils.address import is_address, to_checksum_address
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from deepgrid.errors import ConfigurationError

GIB = 1024**3
DAY_S = 24 * 3600


class FileTerms(BaseModel):
    """The terms of one customer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    quota_gib: float = Field(default=50.0, ge=0)  # all files that the grid keeps
    bundle_gib: float = Field(default=20.0, ge=0)  # one input or output
    file_gib: float = Field(default=20.0, ge=0)
    files: int = Field(default=50_000, ge=0)  # of one input or output
    keep_days: float = Field(default=30.0, ge=0)  # after the last use
    unfinished_hours: float = Field(default=24.0, gt=0)  # of an upload, after its last part

    @property
    def quota_bytes(self) -> int:
        return int(self.quota_gib * GIB)

    @property
    def bundle_bytes(self) -> int:
        return int(self.bundle_gib * GIB)

    @property
    def file_bytes(self) -> int:
        return int(self.file_gib * GIB)

    @property
    def keep_s(self) -> int:
        return int(self.keep_days * DAY_S)

    @property
    def unfinished_s(self) -> int:
        return int(self.unfinished_hours * 3600)


class FilePolicy(FileTerms):
    """The terms of all customers, and other terms of some by their addresses. `all_gib` limits all files together."""

    all_gib: float | None = Field(default=None, ge=0)
    customers: dict[str, FileTerms] = {}

    @field_validator("customers", mode="before")
    @classmethod
    def _fill_in(cls, value: Any, info: Any) -> Any:
        """Let each customer's terms say only what differs."""
        if not isinstance(value, dict):
            return value
        common = {name: info.data[name] for name in FileTerms.model_fields if name in info.data}
        return {
            _address(key): {**common, **terms} if isinstance(terms, dict) else terms for key, terms in value.items()
        }

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """Read the operator's file, in JSON. Raises ConfigurationError."""
        if path is None:
            return cls()
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ConfigurationError(f"The terms of files {path} cannot be read: {error.strerror}.") from None
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise ConfigurationError(
                f"The terms of files {path} are wrong at {where or 'its start'}: {fault['msg']}."
            ) from None

    def of(self, owner: str) -> FileTerms:
        """Return the terms of a customer, by the address with its checksum."""
        return self.customers.get(owner, self)

    @property
    def all_bytes(self) -> int | None:
        return None if self.all_gib is None else int(self.all_gib * GIB)


def _address(text: object) -> str:
    if not is_address(text):
        raise ValueError("a customer is named by the address of the wallet")
    return str(to_checksum_address(str(text)))


class PolicyFile:
    """The operator's file, which is read again when it changed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._policy = FilePolicy.load(path)

    def current(self) -> FilePolicy:
        """Return the terms. If the file is wrong or gone, the previous terms stay."""
        if self._path is not None:
            try:
                found = self._path.stat()
                if (found.st_mtime_ns, found.st_size) != self._read_at:
                    self._read_at = found.st_mtime_ns, found.st_size
                    self._policy = FilePolicy.load(self._path)
            except (OSError, ConfigurationError):
                pass
        return self._policy
