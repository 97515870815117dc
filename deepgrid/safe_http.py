"""Rules for HTTP with other parties: URLs that may carry secrets, trusted certificates, and the size of answers.

Definitions hold passwords of storage and registries. Over http any host on the path can read and change them.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx

_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_IPV4_IN_IPV6 = ipaddress.ip_network("2002::/16")  # 6to4
PLAIN_HTTP_VARIABLE = "DEEPGRID_ALLOW_PLAIN_HTTP"


def fault_of(url: str) -> str:
    """Return the fault of a URL to which secrets are sent; empty if there is none."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host:
        return "must start with http:// or https://, and name a host"
    if parts.username is not None:
        return "must not hold a user name or password"
    if parts.scheme == "https" or is_loopback(host) or plain_http_is_allowed():
        return ""
    return f"would send secrets in clear text: use https, or set {PLAIN_HTTP_VARIABLE}=1 on a network that you trust"


def trusting(authorities: str) -> ssl.SSLContext:
    """Return the usual context of a TLS client, which trusts these authorities (PEM) too. Raises ValueError."""
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cadata=authorities)
    except ssl.SSLError:
        raise ValueError("is not a certificate in PEM form") from None
    return context


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine: 127.0.0.0/8, ::1 or `localhost`. Other names are not resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address is one of the public internet, and leads to no private one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _GLOBAL_IPV6 or address in _IPV4_IN_IPV6:
            return False
    return address.is_global and not address.is_multicast


def plain_http_is_allowed() -> bool:
    """Return whether the environment allows plain http to other machines."""
    return os.environ.get(PLAIN_HTTP_VARIABLE, "") in ("1", "true", "yes")


def tls_of(url: str, authorities: str | None) -> ssl.SSLContext | Literal[False]:
    """Return the context for `url`. It also trusts the grid's own authorities (PEM) and the authorities of
    SSL_CERT_FILE.

    Plain http skips loading certificates, which takes 0.1 s.
    """
    import httpx

    if not url.startswith("https"):
        return False
    return trusting(authorities) if authorities else httpx.create_ssl_context()


UNCOMPRESSED = {"Accept-Encoding": "identity"}  # headers of each request


class ExcessiveAnswer(ValueError):
    """An answer is too large, or compressed. The text is the end of a sentence about it."""


async def read_answer(answer: httpx.Response, most_bytes: int) -> bytes:
    """Return the body of an answer that was requested by `stream`. Raises ExcessiveAnswer."""
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise ExcessiveAnswer("is compressed, which was not asked for")
    content = bytearray()
    async for piece in answer.aiter_raw():
        content += piece
        if len(content) > most_bytes:
            raise ExcessiveAnswer(f"has more than {most_bytes} bytes")
    return bytes(content)
