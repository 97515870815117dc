"""Finds the address book for a command: the named one, or one made from the existing client's variables."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError

from deepgrid.chain.book import AddressBook
from deepgrid.chain.reader import discover
from deepgrid.cli.access.environment import CONTRACT, JOBS, LOGS, RPC, WS, Variables, variables, warn
from deepgrid.errors import ConfigurationError

FOLDER = Path("~/.dps/grids")
FRESH_S = 600  # the grid is looked up again when the book is older
PROBE_WITHIN_S = 3.0
MAX_HEALTH_BYTES = 64 * 1024
FIELDS = {"rpc_url": RPC, "ws_url": WS, "meta_scheduler": CONTRACT, "definitions_url": JOBS, "logs_url": LOGS}


async def find_book(book: Path | None) -> Path | None:
    """Return the named book, or the book of the grid in the existing client's variables, or None.

    Raises ConfigurationError if a variable is missing or wrong, and ChainError if the node does not answer.
    """
    if book is not None:
        return book
    known = variables()
    if not (known.get(RPC) or known.get(CONTRACT)):
        return None
    missing = [name for name in (RPC, CONTRACT, JOBS) if not known.get(name)]
    if missing:
        raise ConfigurationError(
            f"{known.where(RPC if known.get(RPC) else CONTRACT)} is set, but {' and '.join(missing)} not.",
            next_step=f"Set {RPC}, {CONTRACT} and {JOBS}, or name an address book with --book.",
        )
    from_files = sorted({str(known.origins[name]) for name in FIELDS.values() if name in known.origins})
    if from_files:
        warn(f"using the grid that {' and '.join(from_files)} names, with the contract {known.get(CONTRACT)[:60]}")
    path = _path(known)
    if not _is_fresh(path):
        (await _discover_book(known)).save(path)
    return path


def _path(known: Variables) -> Path:
    text = "\n".join(known.get(name) for name in FIELDS.values())
    return FOLDER.expanduser() / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _is_fresh(path: Path) -> bool:
    try:
        return 0 <= time.time() - path.stat().st_mtime < FRESH_S
    except OSError:
        return False


async def _discover_book(known: Variables) -> AddressBook:
    definitions_url = known.get(JOBS).rstrip("/").removesuffix("/graphql")
    fields = {"chain_id": 1, "rpc_url": known.get(RPC), "ws_url": known.get(WS) or None}
    fields |= dict.fromkeys(("meta_scheduler", "credit", "provider_manager"), known.get(CONTRACT))
    fields |= dict.fromkeys(("definitions_url", "logs_url"), definitions_url)
    try:
        book = AddressBook.model_validate(fields)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        what = fault["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"{known.where(FIELDS.get(str(fault['loc'][0]), CONTRACT))} {what}.") from None
    contracts = await discover(book.rpc_url, book.meta_scheduler)
    logs_url = await _logs_url(known.get(LOGS), book.definitions_url)
    return book.model_copy(update={**asdict(contracts), "logs_url": logs_url})


async def _logs_url(endpoint: str, definitions_url: str) -> str:
    """Return the log service for `dps`, which reads over HTTP.

    The existing client's variable often names a port that speaks gRPC only. Then the logs are read from the job
    service, because a grid has one HTTP application for both.
    """
    import httpx  # here, because it takes 0.1 s to load

    from deepgrid.safe_http import UNCOMPRESSED, fault_of, read_answer
    from deepgrid.services.messages import Health

    url = _base(endpoint)
    if not url or url == definitions_url or fault_of(url):
        return definitions_url
    try:
        async with (
            httpx.AsyncClient(headers=UNCOMPRESSED, timeout=PROBE_WITHIN_S) as http,
            http.stream("GET", f"{url}/v1/health") as answer,
        ):
            Health.model_validate_json(await read_answer(answer, MAX_HEALTH_BYTES))
        return url
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return definitions_url


def _base(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")) if parts.netloc else ""
