"""`dps services`: the Job Definition and log services."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from deepgrid.cli.display.screen import report
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import AsJson, BookFile
from deepgrid.cli.standard_streams import start_logging
from deepgrid.client.display.text import moment_utc
from deepgrid.errors import InputError
from deepgrid.extras import needs

services = typer.Typer(help="Run the grid's Job Definition and log services.", no_args_is_help=True)


def _variable(name: str, text: str, **more: Any) -> Any:
    """Return an option that a variable of the services can set, too."""
    return typer.Option(envvar=f"DEEPGRID_SERVICES_{name}", help=text, **more)


DatabaseUrl = Annotated[
    str, _variable("DATABASE", "sqlite:///FILE or postgresql://...; put a URL with a password into the environment.")
]
SecretFile = Annotated[Path, _variable("SECRET_FILE", "File with the key for encryption at rest.")]
BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, a tar file.")]
Sockets = Annotated[
    Path | None,
    _variable(
        "SOCKETS",
        "Folder of the sockets at which the proxy reaches the services. Without it they listen at --port of this"
        " machine, for a look.",
    ),
]
SocketGroup = Annotated[str | None, _variable("SOCKET_GROUP", "Unix group of the proxy. By default only this account.")]
Files = Annotated[
    str,
    _variable(
        "FILES",
        "Folder for customers' files, or URL of a bucket such as s3://BUCKET/PREFIX. By default the grid keeps none.",
    ),
]
FilesTerms = Annotated[
    Path | None, _variable("FILES_TERMS", "JSON file with quotas and retention of files, for all or one customer.")
]
ProxyConfig = Annotated[Path | None, _variable("PROXY_CONFIG", "The proxy's file that `dps services proxy` made.")]
MetricsPort = Annotated[
    int, _variable("METRICS_PORT", "Port of the metrics for Prometheus, on the loopback interface; 0 for none.", min=0)
]


@services.command("migrate")
def migrate_services(database: DatabaseUrl) -> None:
    """Bring the tables of the services' database to this release. Running it again changes nothing."""
    with needs("services"):
        from deepgrid.services.storage.database import Database

    async def prepare() -> None:
        store = Database(database)
        try:
            await store.prepare(migrate=True)
        finally:
            await store.aclose()

    asyncio.run(prepare())
    typer.echo("The services' database has the tables of this release.")


@services.command("backup")
def back_up_services(
    file: BackupFile,
    database: DatabaseUrl,
    secret_file: SecretFile,
    without_secret: Annotated[
        bool, typer.Option("--without-secret", help="Leave the secret file out; without it the backup is unreadable.")
    ] = False,
    book: BookFile = None,
) -> None:
    """Write database and secret file into one archive that only you can read. The services may run meanwhile."""
    with needs("services"):
        from deepgrid.services.database_backup import back_up
    from deepgrid.chain.book import AddressBook

    asyncio.run(back_up(file, database, secret_file, AddressBook.load(book), without_secret=without_secret))
    size = f"{file} ({file.stat().st_size:,} bytes)"
    if without_secret:
        typer.echo(f"Wrote {size}. Keep the secret file, too: the backup cannot be read without it.")
    else:
        typer.echo(f"Wrote {size}. It holds the secret file, so keep it as secret.")


@services.command("restore")
def restore_services(file: BackupFile, database: DatabaseUrl, secret_file: SecretFile, book: BookFile = None) -> None:
    """Restore a backup into an empty database. All services of the grid must be stopped."""
    with needs("services"):
        from deepgrid.services.database_backup import restore
    from deepgrid.chain.book import AddressBook

    found = asyncio.run(restore(file, database, secret_file, AddressBook.load(book)))
    made_at = moment_utc(found.made_at)
    typer.echo(f"Restored the backup of {made_at}. The services take signed requests 5 minutes from now.")
    typer.echo("Session keys of the time before are refused. Customers open new ones.")


@services.command("serve")
def serve_services(
    database: DatabaseUrl,
    secret_file: SecretFile,
    sockets: Sockets = None,
    socket_group: SocketGroup = None,
    port: Annotated[int, _variable("PORT", "Port of this machine without --sockets.", min=0)] = 3000,
    grpc_port: Annotated[
        int | None,
        _variable("GRPC_PORT", "Port of the log service over gRPC without --sockets. None by default.", min=0),
    ] = None,
    metrics_port: MetricsPort = 0,
    files: Files = "",
    files_terms: FilesTerms = None,
    debug_scripts: Annotated[
        bool, typer.Option(help="Show batch scripts, with all secrets, by GraphQL. For tests on this machine only.")
    ] = False,
    existing_clients: Annotated[
        bool,
        _variable(
            "EXISTING_CLIENTS",
            "Serve clients of the original grid: GraphQL, logs over gRPC, definitions without a signature.",
        ),
    ] = True,
    module_hosts: Annotated[
        list[str] | None,
        _variable(
            "MODULE_HOSTS",
            "HOST or HOST:PORT from which modules are fetched for clients that do not sign; repeatable, or with"
            " commas. None by default.",
        ),
    ] = None,
    private_module_hosts: Annotated[
        bool, typer.Option(help="Also fetch from these hosts at private addresses, such as hosts of a site.")
    ] = False,
    web: Annotated[bool, _variable("WEB", "Serve the web app, and the relay that it reads by.")] = True,
    web_node_url: Annotated[
        str | None,
        _variable("WEB_NODE_URL", "URL of a public node, which pages show and offer to wallets. None by default."),
    ] = None,
    web_prefect_url: Annotated[
        str | None,
        _variable(
            "WEB_PREFECT_URL", "URL of the Prefect UI, for links on pages. The default is the URL in the address book."
        ),
    ] = None,
    web_transactions: Annotated[
        bool,
        _variable(
            "WEB_TRANSACTIONS",
            "Take signed transactions to the grid's contracts at the relay, so that wallets can use it as a node.",
        ),
    ] = False,
    keep_days: Annotated[
        int, _variable("KEEP_DAYS", "Days for which logs are kept, and files and tags of jobs after their end.", min=1)
    ] = 30,
    migrate: Annotated[
        bool, typer.Option(help="Change the tables of an earlier release first, as `dps services migrate` does.")
    ] = False,
    book: BookFile = None,
) -> None:
    """Store definitions and logs, and release them to their parties, until stopped by a signal."""
    with needs("services"):
        import uvloop

        from deepgrid.compat.compat_context import CompatSettings
        from deepgrid.compat.existing_clients import serving_existing_clients
        from deepgrid.gateway.backend import open_web
        from deepgrid.gateway.settings import WebSettings
        from deepgrid.services.app import ServicesSettings
        from deepgrid.services.cleanup import DAY_S, Retention
        from deepgrid.services.serve import nothing_in_front
        from deepgrid.services.serve import serve as serve_until_stopped

    start_logging()
    settings = ServicesSettings(
        database, secret_file, sockets=sockets, socket_group=socket_group, book=book, metrics_port=metrics_port
    )
    settings = replace(settings, port=port, grpc_port=grpc_port, debug_scripts=debug_scripts, migrate=migrate)
    settings = replace(settings, retention=Retention(log_s=keep_days * DAY_S))
    settings = replace(settings, files=files, files_terms=files_terms)
    pages = WebSettings(
        node_url=public_url(web_node_url), prefect_url=public_url(web_prefect_url), transactions=web_transactions
    )
    in_front = partial(open_web, settings=pages) if web else nothing_in_front
    compat = CompatSettings(hosts_of(module_hosts), private_module_hosts)
    behind = partial(serving_existing_clients, settings=compat) if existing_clients else None
    uvloop.run(serve_until_stopped(settings, in_front, behind))


@services.command("proxy")
def print_proxy_file(
    sockets: Annotated[
        list[Path], typer.Option(help="Folder with the sockets of a process of the services; repeatable.")
    ],
    name: Annotated[str, typer.Option(help="Host name of the services.")] = "",
    certificate: Annotated[Path | None, typer.Option(help="Certificate with its chain, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's private key, PEM.")] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(help="Port, or IP address with a port; repeatable. 443 of IPv4 and IPv6 by default."),
    ] = None,
    clear_grpc: Annotated[
        str | None, typer.Option(help="Loopback address with a port of gRPC in clear text. None by default.")
    ] = None,
    behind: Annotated[
        list[str] | None,
        typer.Option(help="Network of a proxy in front whose X-Forwarded-For is trusted; repeatable. None by default."),
    ] = None,
    state: Annotated[Path, typer.Option(help="Folder for nginx's own files.")] = Path("/var/lib/deepgrid/proxy"),
    account: Annotated[
        str | None, typer.Option(help="Account of nginx's worker processes. Leave it out if nginx is not root's.")
    ] = None,
    workers: Annotated[str, typer.Option(help="Number of nginx's worker processes, or auto.")] = "auto",
) -> None:
    """Print the configuration of nginx, which is between the network and the services.

    Start it by `nginx -e stderr -c FILE`. `dps services doctor` finds out whether the file is still this one.
    """
    with needs("services"):
        from deepgrid.services.edge.proxy_file import proxy_file, proxy_settings

    addresses = {"sockets": tuple(sockets), "clear_grpc": clear_grpc, "behind": tuple(behind or ())}
    addresses |= {"listen": tuple(listen)} if listen else {}
    tls = {"name": name, "certificate": certificate, "key": key}
    settings = proxy_settings(state=state, account=account, workers=workers, **addresses, **tls)
    typer.echo(proxy_file(settings), nl=False)


@services.command("doctor")
@runs
async def examine(
    database: DatabaseUrl,
    secret_file: SecretFile,
    sockets: Sockets = None,
    socket_group: SocketGroup = None,
    proxy_config: ProxyConfig = None,
    metrics_port: MetricsPort = 0,
    book: BookFile = None,
    as_json: AsJson = False,
) -> None:
    """Find what is wrong with the set-up of the services: files, database, chain, public URLs, TLS, metrics.

    Give it the settings of `dps services serve`, and run it as the same account. It changes nothing.
    """
    with needs("services"):
        from deepgrid.services.app import ServicesSettings
        from deepgrid.services.doctor.examination import examine_services

    settings = ServicesSettings(
        database, secret_file, sockets=sockets, socket_group=socket_group, book=book, metrics_port=metrics_port
    )
    report(await examine_services(settings, proxy_config), "the services", as_json=as_json)


def public_url(url: str | None) -> str | None:
    """Return a public URL. Raises InputError if it is not a URL, or contains a password."""
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("A public URL starts with https:// or http:// and names a host.")
    if parts.username or parts.password:
        raise InputError("A public URL must not hold a password: everybody sees it.")
    return url.rstrip("/")


def hosts_of(entries: list[str] | None) -> tuple[str, ...]:
    """Return the hosts of a repeated option. Each value may list several, separated by commas."""
    return tuple(host.strip() for entry in entries or () for host in entry.split(","))
