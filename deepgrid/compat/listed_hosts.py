"""The hosts that the services' git may reach for strangers: the ones that the operator lists, at addresses checked
before.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import subprocess
from functools import cache
from urllib.parse import urlsplit

from deepgrid.compat.compat_context import HTTPS_PORT, CompatSettings
from deepgrid.modules import Unavailable
from deepgrid.modules.source import Folder, Source
from deepgrid.safe_http import is_public

# git follows neither redirects nor the alternates of a repository.
_ONLY_THERE = ("http.followRedirects=false", "http.proxy=", "transfer.bundleURI=false")
_OPTIONS = (*_ONLY_THERE, "http.sslVerify=true", "credential.helper=", "core.bigFileThreshold=1m", "pack.threads=1")
_NO_FILES = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
_NO_QUESTIONS = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false", "LC_ALL": "C"}
_KEPT = ("PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH")


class ListedHosts:
    """Repositories by https at the listed hosts. git uses only the addresses that were checked."""

    def __init__(self, settings: CompatSettings) -> None:
        self._settings = settings
        self._pinned: dict[tuple[str, int], str] = {}

    def require(self, source: Source) -> None:
        """Raise Unavailable unless the source is at a listed host, whose addresses are public."""
        if isinstance(source, Folder):
            raise Unavailable("must name a repository; this job came without its folder")
        parts = urlsplit(source.url)
        host, port = (parts.hostname or "").lower(), parts.port or HTTPS_PORT
        if parts.scheme != "https" or (host, port) not in self._settings.hosts_and_ports():
            shown = ", ".join(self._settings.module_hosts) or "none"
            raise Unavailable(
                f"must be at a host from which this grid fetches modules by https ({shown}); submit with `dps`, which"
                " fetches modules itself"
            )
        if not _git_keeps_to_addresses():
            raise Unavailable("the services of this grid have no git of version 2.37 or newer")
        if (host, port) not in self._pinned:
            self._pinned[host, port] = ",".join(self._addresses(host, port))

    def address(self, url: str) -> str:
        """Return the repository itself: no mirrors."""
        return url

    def options(self) -> tuple[str, ...]:
        """Return the settings that keep git at the checked addresses."""
        pins = (f"http.curloptResolve={host}:{port}:{found}" for (host, port), found in self._pinned.items())
        return (*_OPTIONS, *pins)

    def environment(self) -> dict[str, str]:
        """Return an environment without the settings, credentials and proxies of the services' account."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | _NO_FILES | _NO_QUESTIONS | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "https"}

    def _addresses(self, host: str, port: int) -> list[str]:
        """Return all addresses of the host, as curl expects them. Raises Unavailable if one is not public."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Unavailable(f"the name {host} has no address at the moment", transient=True) from None
        addresses = [ipaddress.ip_address(str(where[0]).partition("%")[0]) for *_, where in found]
        if not self._settings.private_module_hosts and not all(map(is_public, addresses)):
            raise Unavailable(f"the host {host} is at a private address")
        return [f"[{address}]" if address.version == 6 else str(address) for address in dict.fromkeys(addresses)]


@cache
def _git_keeps_to_addresses() -> bool:
    """Return whether the installed git knows `http.curloptResolve`; older ones ignore it."""
    try:
        said = subprocess.run(["git", "version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= (2, 37)
