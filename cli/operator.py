"""`dps operator`, `dps services`: the contracts and the processes of the grid's operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.administration import close_grid, constants, open_grid, withdraw
from cli.border import runs
from cli.deploy import deploy_contracts
from cli.options import BookFile
from cli.serving import serve, start_logging

operator = typer.Typer(help="Deploy and administer the contracts, run the meta-scheduler.", no_args_is_help=True)
services = typer.Typer(help="Run the grid's Job Definition and log services.", no_args_is_help=True)


operator.command("deploy")(deploy_contracts)
operator.command("constants")(constants)
operator.command("withdraw")(withdraw)
operator.command("open")(open_grid)
operator.command("close")(close_grid)


@operator.command("serve")
def serve_operator(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator block.")]) -> None:
    """Follow the chain and assign jobs, until stopped by a signal."""
    from deployments.operator.process import serve_operator as operate

    serve(operate, name)


@services.command("serve")
@runs
async def serve_services(
    database: Annotated[
        str,
        typer.Option(
            envvar="DEEPGRID_SERVICES_DATABASE",
            help="sqlite:///FILE or postgresql://...; one with a password belongs into the environment.",
        ),
    ],
    secret_file: Annotated[
        Path,
        typer.Option(envvar="DEEPGRID_SERVICES_SECRET_FILE", help="Key of the encryption at rest; made if missing."),
    ],
    host: Annotated[str, typer.Option(envvar="DEEPGRID_SERVICES_HOST", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="DEEPGRID_SERVICES_PORT", help="Port to listen at.", min=0)] = 3000,
    tls_cert: Annotated[
        Path | None, typer.Option(envvar="DEEPGRID_SERVICES_TLS_CERT", help="Certificate with its chain, PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(envvar="DEEPGRID_SERVICES_TLS_KEY", help="The certificate's private key, PEM.")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DEEPGRID_SERVICES_TRUSTED_PROXY",
            help="Address or network of a proxy whose X-Forwarded-For counts; repeatable. Nobody's by default.",
        ),
    ] = None,
    allow_plain_http: Annotated[
        bool, typer.Option(help="Listen without TLS at an address that other machines reach: secrets in clear text.")
    ] = False,
    book: BookFile = None,
) -> None:
    """Keep definitions and logs, and hand each to whom it belongs, until stopped by a signal."""
    from deepgrid.services.app import ServicesSettings
    from deepgrid.services.serve import serve as serve_until_stopped

    start_logging()
    settings = ServicesSettings(
        database, secret_file, host=host, port=port, book=book, tls_cert=tls_cert, tls_key=tls_key,
        trusted_proxies=tuple(trusted_proxy or ()), allow_plain_http=allow_plain_http,
    )  # fmt: skip
    await serve_until_stopped(settings)
