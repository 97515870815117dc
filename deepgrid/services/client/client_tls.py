"""How HTTP clients of the services verify certificates."""

from __future__ import annotations

import ssl
from typing import Literal

import httpx

from deepgrid.secure_url import trusting


def tls_of(url: str, authorities: str | None) -> ssl.SSLContext | Literal[False]:
    """The context for `url`. It trusts the grid's own authorities (PEM) too, and those of SSL_CERT_FILE.

    Plain http skips loading certificates, which takes 0.1 s.
    """
    if not url.startswith("https"):
        return False
    return trusting(authorities) if authorities else httpx.create_ssl_context()
