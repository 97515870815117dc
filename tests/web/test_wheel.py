"""The installed wheel serves the web app without Node, even behind a proxy with a prefix."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from playwright.async_api import async_playwright
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.chain.grid import Grid, running_grid
from tests.wheel.support import REPOSITORY, Installation, build_wheel, install

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CHROMIUM = "/usr/bin/chromium"
PROGRAMS = ("bash", "env", "nice", "prlimit")  # of every Linux; neither node nor shellcheck
PREFIX = "/grid/of/us"
EXAMPLE = REPOSITORY / "examples" / "hello-world.yaml"
KEPT = "localStorage.getItem(`signer ${location.pathname}`)"
POLICY = "default-src 'none'"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel of this checkout with the extra `web`."""
    folder = tmp_path_factory.mktemp("wheel")
    return install(build_wheel(folder), folder / "venv", "web")


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("served")) as grid:
        yield grid


@contextlib.asynccontextmanager
async def served(installed: Installation, grid: Grid, folder: Path) -> AsyncIterator[str]:
    """Run `dps web` of the wheel, with few other programs on its path. Yields its address with the token."""
    book = grid.book.save(folder / "grid.json")
    file = folder / "address"
    programs = folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(str(shutil.which(name)))
    process = await asyncio.create_subprocess_exec(
        installed.folder / "bin" / "dps", "web", "--port", "0", "--address-file", str(file), "--book", str(book),
        "--key", str(grid.new_key(folder.name).key_file), cwd=folder,
        env={"PATH": str(programs), "HOME": str(folder)},
    )  # fmt: skip
    try:
        async with asyncio.timeout(120):
            while not file.exists():
                assert process.returncode is None, "dps web has ended"
                await asyncio.sleep(0.05)
        yield file.read_text().strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def proxied(target: str) -> AsyncIterator[str]:
    """Run a proxy of the server at `target` below PREFIX. Yields its address without the prefix."""
    async with httpx.AsyncClient(base_url=target, trust_env=False) as http:

        async def hand_on(request: Request) -> Response:
            query = request.url.query
            path = request.url.path.removeprefix(PREFIX) + (f"?{query}" if query else "")
            headers = [(name, value) for name, value in request.headers.items() if name != "content-length"]
            answer = await http.request(request.method, path, content=await request.body(), headers=headers)
            dropped = ("content-encoding", "content-length", "transfer-encoding", "connection")
            handed = Response(answer.content, answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in dropped:
                    handed.headers.append(name, value)
            return handed

        app = Starlette(routes=[Route(PREFIX + "/{rest:path}", hand_on, methods=["GET", "POST", "HEAD"])])
        server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None))
        serving = asyncio.create_task(server.serve())
        async with asyncio.timeout(30):
            while not server.started:
                await asyncio.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


async def opened(address: str) -> tuple[list[str], list[str]]:
    """Return what a browser shows at the address: failed answers, and complaints of the console."""
    failed: list[str] = []
    said: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("response", lambda one: failed.append(f"{one.status} {one.url}") if _matters(one) else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda one: said.append(one.text) if "Content Security Policy" in one.text else None)
        await page.goto(address)
        await page.locator("main").first.wait_for()
        await page.wait_for_function(f"{KEPT} !== null")
        headers = f'{{"Content-Type": "application/json", "X-Grid-Signer": {KEPT}}}'
        accounts = await page.evaluate(
            f"""async () => (await fetch("signer", {{method: "POST", body: '{{"method": "eth_accounts"}}',
               headers: {headers}}})).json()"""
        )
        assert len(accounts["result"]) == 1, accounts
        checked = await page.evaluate(
            f"""async (file) => (await fetch("v1/check", {{method: "POST", body: JSON.stringify({{file}}),
               headers: {headers}}})).json()""",
            EXAMPLE.read_text(),
        )
        assert checked["resources"]["ntasks"] == 1, checked
        await browser.close()
    return failed, said


def _matters(answer: object) -> bool:
    """Return whether a failed answer is from the app itself. The services of this grid do not run."""
    status, url = getattr(answer, "status", 0), str(getattr(answer, "url", ""))
    return int(status) >= 400 and "/v1/" not in url


async def test_the_wheel_serves_the_app_without_node(installed: Installation, grid: Grid, tmp_path: Path) -> None:
    async with served(installed, grid, tmp_path) as address, httpx.AsyncClient(trust_env=False) as http:
        base = address.partition("#")[0]
        index = await http.get(base)
        assert index.status_code == 200
        assert POLICY in index.headers["content-security-policy"]
        files = re.findall(r'(?:src|href)="(\./[^"]+)"', index.text)
        assert files, index.text
        for file in files:
            assert (await http.get(base + file)).status_code == 200, file
        assert await opened(address) == ([], [])


async def test_the_app_works_behind_a_proxy_with_a_prefix(installed: Installation, grid: Grid, tmp_path: Path) -> None:
    async with served(installed, grid, tmp_path) as address:
        base, _, token = address.partition("#")
        async with proxied(base) as proxy:
            assert await opened(f"{proxy}{PREFIX}/#{token}") == ([], [])
