"""The edge of the services: nginx is the only listener that others reach, and the services listen behind it.

TLS, HTTP/2, slow clients, sizes, and limits per source address are nginx's, in the one file that `proxy_file` makes.
The services listen on Unix sockets that only the proxy's account can open, or on loopback for a look.
"""

from deepgrid.services.edge.listeners import BACKLOG, Listeners, address_of, open_listeners
from deepgrid.services.edge.proxy_file import (
    EdgeLimits,
    ProxySettings,
    deployed_settings,
    digest_in,
    proxy_file,
    proxy_settings,
)

__all__ = [
    "BACKLOG", "EdgeLimits", "Listeners", "ProxySettings", "address_of", "deployed_settings", "digest_in",
    "open_listeners", "proxy_file", "proxy_settings",
]  # fmt: skip
