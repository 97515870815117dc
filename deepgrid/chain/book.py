"""The address book: one JSON file with the addresses and endpoints of a grid, the same for every role.

It holds no secret and may be published. It is written atomically. The book of another chain never replaces it silently.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

from eth_utils.address import is_address, is_checksum_address, to_checksum_address
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import write_json
from deepgrid.safe_http import fault_of, trusting

BOOK_VARIABLE = "DEEPGRID_BOOK"
DEFAULT_BOOK = "~/.dps/grid.json"


def _address(text: str) -> str:
    if not is_address(text):
        raise ValueError("is not an address (0x and 40 hex digits)")
    mixed_case = text[2:] not in (text[2:].lower(), text[2:].upper())
    if mixed_case and not is_checksum_address(text):
        raise ValueError("has a wrong checksum: a digit is mistyped")
    return str(to_checksum_address(text))


def _url(schemes: tuple[str, ...], text: str) -> str:
    if not text.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return text.rstrip("/")


def _without_clear_text(url: str) -> str:
    if fault := fault_of(url):
        raise ValueError(fault)
    return url


def _authorities(pem: str) -> str:
    trusting(pem)
    return pem


Address = Annotated[str, AfterValidator(_address)]
HttpUrl = Annotated[str, AfterValidator(lambda text: _url(("http", "https"), text))]
ServicesUrl = Annotated[HttpUrl, AfterValidator(_without_clear_text)]
WsUrl = Annotated[str, AfterValidator(lambda text: _url(("ws", "wss"), text))]


class AddressBook(BaseModel):
    """One grid: its chain, contracts and services. Addresses have their checksum.

    `first_block` is the block of the oldest contract: no event of the grid is older. `authorities` are certificates
    (PEM) of private authorities that clients of the grid trust for its URLs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chain_id: int = Field(gt=0)
    rpc_url: HttpUrl
    ws_url: WsUrl | None = None
    meta_scheduler: Address
    credit: Address
    provider_manager: Address
    definitions_url: ServicesUrl
    logs_url: ServicesUrl
    first_block: int = Field(default=0, ge=0)
    prefect_ui_url: HttpUrl | None = None
    authorities: Annotated[str, AfterValidator(_authorities)] | None = None

    @property
    def contracts(self) -> dict[str, str]:
        """The addresses of the contracts by name."""
        found = {"MetaScheduler": self.meta_scheduler, "Credit": self.credit}
        return found | {"ProviderManager": self.provider_manager}

    @classmethod
    def load(cls, path: Path | str | None = None) -> AddressBook:
        """Return the book at `path` if given, at DEEPGRID_BOOK if set, otherwise at ~/.dps/grid.json.

        Raises ConfigurationError if it is missing or not a valid book.
        """
        where = book_path(path)
        try:
            return cls.model_validate_json(where.read_bytes())
        except FileNotFoundError:
            raise ConfigurationError(
                f"There is no address book at {where}.",
                next_step=f"Get it from the operator, or by `./run up`, and set {BOOK_VARIABLE} to its path.",
            ) from None
        except OSError as error:
            raise ConfigurationError(f"The address book {where} cannot be read: {error.strerror}.") from None
        except ValidationError as error:
            raise ConfigurationError(f"The address book {where} is not valid: {_complaints(error)}.") from None

    def save(self, path: Path | str | None = None) -> Path:
        """Write the book atomically; returns its path.

        Raises ConfigurationError if the path holds a book of another chain or another file.
        """
        where = book_path(path)
        self._refuse_foreign(where)
        # A release before `authorities` refuses books that have the field.
        write_json(where, self.model_dump(mode="json", exclude=None if self.authorities else {"authorities"}))
        return where

    def _refuse_foreign(self, where: Path) -> None:
        try:
            standing = json.loads(where.read_bytes())["chain_id"]
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, OSError):
            raise ConfigurationError(
                f"{where} exists and is not an address book.", next_step="Move it away, or choose another file."
            ) from None
        if standing != self.chain_id:
            raise ConfigurationError(
                f"{where} is the address book of chain {standing}, not of {self.chain_id}.",
                next_step=f"Move it away, or set {BOOK_VARIABLE} to another file.",
            )


def book_path(path: Path | str | None = None) -> Path:
    """Return the path of the book: `path` if given, DEEPGRID_BOOK if set, otherwise ~/.dps/grid.json."""
    return Path(path or os.environ.get(BOOK_VARIABLE) or DEFAULT_BOOK).expanduser()


def _complaints(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_input=False, include_url=False)
    )
