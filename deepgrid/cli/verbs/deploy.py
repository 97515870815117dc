"""`dps operator deploy`: deploys the contracts, grants their roles, writes the address book."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deepgrid.chain.book import AddressBook, book_path
from deepgrid.chain.deploy.deploy import Roles, deploy_to_book
from deepgrid.cli.access.grid import address, wallet
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, BookFile, KeyFile
from deepgrid.cli.standard_streams import print_result
from deepgrid.errors import InputError
from deepgrid.safe_http import fault_of, trusting

Who = list[str] | None


def _role(name: str, duty: str) -> Any:
    """Return an option for the addresses of one role."""
    text = f"Address that {duty}, instead of the operator; repeatable."
    return typer.Option(name, metavar="ADDRESS", help=text)


RpcUrl = Annotated[str | None, typer.Option("--rpc-url", metavar="URL", help="URL of the chain's node.")]
WsUrl = Annotated[str | None, typer.Option("--ws-url", metavar="URL", help="URL of the node's websocket.")]
DefinitionsUrl = Annotated[
    str | None, typer.Option("--definitions-url", metavar="URL", help="URL of the Job Definition service.")
]
LogsUrl = Annotated[str | None, typer.Option("--logs-url", metavar="URL", help="URL of the log service.")]
PrefectUiUrl = Annotated[str | None, typer.Option("--prefect-ui-url", metavar="URL", help="URL of Prefect's UI.")]
Authorities = Annotated[
    Path | None,
    typer.Option(
        "--authorities", metavar="FILE", help="Certificates (PEM) of private authorities that the grid's clients trust."
    ),
]
Operator = Annotated[
    str | None,
    typer.Option("--operator", metavar="ADDRESS", help="Address that assigns and panics jobs and approves providers."),
]
Assign = Annotated[Who, _role("--assign", "assigns jobs")]
Panic = Annotated[Who, _role("--panic", "panics jobs")]
Approve = Annotated[Who, _role("--approve", "approves providers")]
DONE = {0: "The contracts were in place; nothing was sent.", 1: "1 transaction was sent."}


@runs
async def deploy_contracts(
    rpc_url: RpcUrl = None,
    ws_url: WsUrl = None,
    definitions_url: DefinitionsUrl = None,
    logs_url: LogsUrl = None,
    prefect_ui_url: PrefectUiUrl = None,
    authorities: Authorities = None,
    operator: Operator = None,
    assign: Assign = None,
    panic: Panic = None,
    approve: Approve = None,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Deploy and connect the contracts, grant roles, write the address book.

    The key becomes the contracts' admin and the minter of credits. A repeated run does only the missing steps: after
    an interruption, to grant more roles, or to change a URL. An address book of another chain is not overwritten.
    """
    where = book_path(book)
    standing = AddressBook.load(where) if where.exists() else None
    given = {"rpc_url": rpc_url, "ws_url": ws_url, "definitions_url": definitions_url, "logs_url": logs_url}
    further = {"prefect_ui_url": prefect_ui_url, "authorities": _text_of(authorities)}
    endpoints = _endpoints(given | further, standing)
    duties = _roles(operator, assign, panic, approve, standing)
    admin = wallet(key)
    print_result(f"The grid's contracts, with the key of {admin.address}:")
    written, sent = await deploy_to_book(
        where, str(endpoints["rpc_url"]), admin, duties, endpoints, tell=lambda line: print_result(f"  {line}")
    )
    changed = " It was changed." if standing not in (None, written) else ""
    print_result(
        f"{DONE.get(sent, f'{sent} transactions were sent.')} The address book of chain {written.chain_id} is"
        f" {where}.{changed}"
    )


def _endpoints(given: dict[str, str | None], standing: AddressBook | None) -> dict[str, str | None]:
    """Return the URLs for the book: the given ones, or the current ones.

    Raises InputError if a required one is missing.
    """
    found: dict[str, str | None] = {
        name: url or (getattr(standing, name) if standing else None) for name, url in given.items()
    }
    for name in ("rpc_url", "definitions_url", "logs_url"):
        if found[name] is None:
            raise InputError(f"A new address book needs --{name.replace('_', '-')}.")
    for name in ("definitions_url", "logs_url"):
        if fault := fault_of(found[name] or ""):
            raise InputError(f"--{name.replace('_', '-')} {fault}.")
    return found


def _text_of(file: Path | None) -> str | None:
    """Return the certificates in a file. Raises InputError if it has none."""
    if file is None:
        return None
    try:
        text = file.read_text()
        trusting(text)
    except (OSError, ValueError):
        raise InputError(f"{file} is not a readable file of certificates in PEM form.") from None
    return text


def _roles(operator: str | None, assign: Who, panic: Who, approve: Who, standing: AddressBook | None) -> Roles:
    """Return the roles to grant. An existing grid needs no new ones.

    Raises InputError if a required role is missing.
    """
    everything = [operator] if operator else []
    assigning, panicking, approving = (
        tuple(address(who) for who in named or everything) for named in (assign, panic, approve)
    )
    if standing is None and not assigning:
        raise InputError("No address would assign jobs.", next_step="Name --operator or --assign.")
    if standing is None and not approving:
        raise InputError("No address would approve providers.", next_step="Name --operator or --approve.")
    return Roles(assigning, panicking, approving)
