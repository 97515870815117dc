"""The network outside a sandbox: a greeting at the machine's address, one on its loopback, and two name servers.

Prints a line once it answers. The machine's name server resolves every name to 203.0.113.1, the other to 203.0.113.2.
"""

from __future__ import annotations

import socket
import socketserver
import threading


class Greeting(socketserver.BaseRequestHandler):
    """Sends the name of the address at which it was reached."""

    def handle(self) -> None:
        host: str = self.server.server_address[0]  # type: ignore[attr-defined]
        self.request.sendall(b"loopback\n" if host == "127.0.0.1" else b"world\n")


class NameServer(socketserver.BaseRequestHandler):
    """Answers each DNS query for an IPv4 address with an address that identifies the server.

    Other queries get no address.
    """

    def handle(self) -> None:
        query, sender = self.request
        end = query.index(b"\0", 12) + 5
        wants_ip4 = query[end - 4 : end - 2] == b"\0\1"
        last: str = self.server.server_address[0]  # type: ignore[attr-defined]
        address = socket.inet_aton("203.0.113." + last.rpartition(".")[2])
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + address if wants_ip4 else b""
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if wants_ip4 else b"\0\0") + b"\0\0\0\0"
        sender.sendto(head + query[12:end] + answer, self.client_address)


def main() -> None:
    servers: list[socketserver.BaseServer] = [
        socketserver.ThreadingTCPServer(("198.51.100.1", 8080), Greeting),
        socketserver.ThreadingTCPServer(("127.0.0.1", 8081), Greeting),
        socketserver.ThreadingUDPServer(("198.51.100.1", 53), NameServer),
        socketserver.ThreadingUDPServer(("198.51.100.2", 53), NameServer),
    ]
    for server in servers:
        threading.Thread(target=server.serve_forever).start()
    print("ready", flush=True)


if __name__ == "__main__":
    main()
