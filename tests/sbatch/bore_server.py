"""A bore server for tests: bore_server.py PORT FOLDER. It runs apart from the tests, inside their sandbox.

It speaks SSH without client authentication, or with the password in FOLDER/password. It answers `tcpip-forward` with a
public port. If a session channel is open by then, it writes the addresses to it. It answers no request of that
channel. It writes what it sees as lines to FOLDER/seen. While FOLDER/drop exists it closes its connections.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

POLL_S = 0.1


class _SilentTransport(paramiko.Transport):
    """Leaves requests for a shell or a command without an answer."""

    _channel_handler_table = {  # noqa: RUF012 - as declared
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_REQUEST: lambda channel, message: None,
    }


class Client(paramiko.ServerInterface):
    """One connection."""

    def __init__(self, transport: paramiko.Transport, folder: Path, password: str) -> None:
        self.transport, self.folder, self.password = transport, folder, password
        self.session: paramiko.Channel | None = None

    def note(self, text: str) -> None:
        with (self.folder / "seen").open("a") as seen:
            seen.write(text + "\n")

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_none(self, username: str) -> int:
        return paramiko.AUTH_FAILED if self.password else paramiko.AUTH_SUCCESSFUL

    def check_auth_password(self, username: str, password: str) -> int:
        self.note(f"password {'right' if password == self.password else 'wrong'}")
        return paramiko.AUTH_SUCCESSFUL if password == self.password else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_global_request(self, kind: str, msg: paramiko.Message) -> bool:
        self.note(f"request {kind}")
        return False

    def check_port_forward_request(self, address: str, port: int) -> int:
        listener = socket.create_server((address, port))
        public = int(listener.getsockname()[1])
        self.note(f"forward {address}:{port}")
        threading.Thread(target=self.serve, args=(listener, address, public), daemon=True).start()
        return public

    def serve(self, listener: socket.socket, address: str, port: int) -> None:
        if self.session:
            self.session.send(
                "Generated HTTP URL: http://4fb71d0c.bore.test\nGenerated HTTPS URL: https://4fb71d0c.bore.test\n"
                f"Direct TCP: tcp://bore.test:{port}\n\n".encode()
            )
        self.note(f"port {port}")
        while self.transport.is_active():
            connection, origin = listener.accept()
            try:
                channel = self.transport.open_forwarded_tcpip_channel(origin, (address, port))
            except paramiko.SSHException:  # nothing listens in the step
                connection.close()
                continue
            for ends in ((connection, channel), (channel, connection)):
                threading.Thread(target=carry, args=ends, daemon=True).start()

    def run(self) -> None:
        while self.transport.is_active():
            if (self.folder / "drop").exists():
                self.transport.close()
                self.note("dropped")
            self.session = self.transport.accept(POLL_S) or self.session


def carry(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends. A channel has the methods of a socket that are used here."""
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    password = (folder / "password").read_text()
    key = paramiko.RSAKey.generate(2048)
    listener = socket.create_server(("0.0.0.0", port))
    (folder / "listening").touch()
    while True:
        connection, _ = listener.accept()
        while (folder / "drop").exists():
            time.sleep(POLL_S)
        transport = _SilentTransport(connection)
        transport.add_server_key(key)
        client = Client(transport, folder, password)
        try:
            transport.start_server(server=client)
        except (paramiko.SSHException, EOFError, OSError):
            continue
        threading.Thread(target=client.run, daemon=True).start()


if __name__ == "__main__":
    main()
