"""Admits one account of this machine, if the system reveals which account sends a request over loopback. Linux reveals
it to every process, by the socket diagnosis of netlink. Other systems reveal it only to root.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

# Names and layouts of linux/sock_diag.h and linux/inet_diag.h.
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
ANY_STATE = 0xFFFF_FFFF
NO_COOKIE = b"\xff" * 8
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
DIAG_REQUEST = struct.Struct("=BBBxI")  # family, protocol, extensions, states
PORTS = struct.Struct("!HH")  # of the socket itself, and of its peer
DIAG_REPLY = struct.Struct("=4x4s44x12xII")  # ports, uid, inode
LARGEST_ANSWER = 4096

Address = tuple[str, int]

logger = logging.getLogger(__name__)


class OwnAccount:
    """Middleware: answers the account of this process, and root, which can read the key file anyway.

    If the system does not reveal the account, it says so at the start, and answers all.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._is_supported = is_supported()
        if not self._is_supported:
            logger.warning("this system does not reveal which account sends a request: only sessions keep others out")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_supported:
            uid = uid_behind(scope["client"], scope["server"])
            if uid not in (os.geteuid(), 0):
                if uid is not None:  # else the caller has hung up already
                    logger.warning("the web app refused a request of another account: uid=%d", uid)
                refusal = JSONResponse({"error": "This address serves the account that runs `dps web` only."}, 403)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def uid_behind(peer: Address | None, here: Address | None) -> int | None:
    """Return the account whose socket is bound to `peer` and connected to `here`; None if that is not known.

    A connection that was reset has no `peer` any more.
    """
    if sys.platform != "linux" or peer is None or here is None:
        return None
    ports = PORTS.pack(peer[1], here[1])
    addresses = b"".join(socket.inet_aton(host).ljust(16, b"\0") for host in (peer[0], here[0]))
    body = (
        DIAG_REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, ANY_STATE) + ports + addresses + bytes(4) + NO_COOKIE
    )
    head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, 1, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
            kernel.sendto(head + body, (0, 0))
            answer = kernel.recv(LARGEST_ANSWER, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None
    found, uid, inode = DIAG_REPLY.unpack_from(answer, HEADER.size)
    # The kernel names a listener at the port of `peer` too. A socket without an inode is closed, and counts as root's.
    return int(uid) if found == ports and inode else None


def is_supported() -> bool:
    """Return whether the system reveals accounts of connections.

    Tests it with a connection of this process to itself.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as own:
        return uid_behind(own.getsockname(), listener.getsockname()) == os.geteuid()
