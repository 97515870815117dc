"""A git server that speaks https on a free port of this machine, for `git.example`, and records its requests."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "git.example"
MODULE = """\
name: greet
description: Greets somebody.
minimumResources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
inputs: [{key: WHO, description: who is greeted}]
outputs: []
steps:
- run: {command: 'echo "Hello $WHO"'}
"""


@dataclass
class GitServer:
    """One repository, `OWNER/tools`, and the requests that came. `moved_to` makes the server redirect all of them."""

    root: Path
    port: int
    certificate: Path
    asked: list[str] = field(default_factory=list)
    authorised: list[str] = field(default_factory=list)
    moved_to: str = ""

    @property
    def where(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def source(self) -> str:
        return f"{self.where}/owner/tools"

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        done = subprocess.run(["git", *who, *words], cwd=work, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def publish(self, text: str = MODULE, path: str = "module.yaml") -> str:
        """Commit a file and make it fetchable. Returns the commit."""
        bare = self.root / "www" / "owner" / "tools"
        if not (self.root / "work" / ".git").exists():
            self.git("init", "--quiet")
        (self.root / "work" / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        self.git("push", "--quiet", "--force", str(bare), "HEAD:refs/heads/main")
        subprocess.run(["git", "--git-dir", str(bare), "update-server-info"], check=True)
        return self.git("rev-parse", "HEAD")


class _Handler(SimpleHTTPRequestHandler):
    """Static files, which git can fetch without a program at the server."""

    def __init__(self, *words: object, told: GitServer, **named: object) -> None:
        self._told = told
        super().__init__(*words, **named)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._told.asked.append(self.path)
        if "Authorization" in self.headers or "Cookie" in self.headers:
            self._told.authorised.append(self.path)
        if self._told.moved_to:
            self.send_response(302)
            self.send_header("Location", self._told.moved_to + self.path)
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def git_server(root: Path) -> Iterator[GitServer]:
    """Serve while the context lasts."""
    certificate, key = root / "server.pem", root / "server.key"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", f"/CN={HOST}"]
    subprocess.run([*argv, "-addext", f"subjectAltName=DNS:{HOST}"], check=True, capture_output=True)
    bare = root / "www" / "owner" / "tools"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(bare)], check=True)
    told = GitServer(root, 0, certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, told=told, directory=str(root / "www")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
