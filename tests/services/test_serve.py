"""The services as a process, with a real chain."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import Response

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import AccessDenied, ConfigurationError, GridError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.services.app import ServicesSettings
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.http_server import serving_http
from deepgrid.services.edge.listeners import open_listeners
from deepgrid.services.serve import listening, serve
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.signing.signers import SessionKey
from deepgrid.workflow import verify_resources
from tests.appending import push_log
from tests.chain.anvil import Anvil
from tests.chain.grid import CREDIT, Grid, build, gather_people
from tests.services.support import a_job
from tests.waiting import until

FOLLOWERS = 60  # one client opens 100 connections at most
PROGRAM = """
import asyncio, faulthandler, signal, sys
from pathlib import Path
from deepgrid.services.app import ServicesSettings
from deepgrid.services.serve import serve

def show_waits():
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)
    faulthandler.dump_traceback(sys.stderr)
    print("these are all", file=sys.stderr, flush=True)

async def main(book, folder, port):
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, show_waits)
    await serve(ServicesSettings(f"sqlite:///{folder}/db", Path(folder, "secret"), port=int(port), book=Path(book)))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    folder = tmp_path_factory.mktemp("services-chain")
    anvil = Anvil(folder)
    anvil.start()
    try:
        yield build(anvil, folder / "keys")
    finally:
        anvil.stop()


async def test_a_process_serves_a_real_job_and_stops_on_a_signal(real: Grid, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    book = real.book.save(tmp_path / "grid.json")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, book, tmp_path, str(port))
    try:
        async with await Chain.connect(real.book) as chain:
            await life_of_a_job(real, chain, f"http://127.0.0.1:{port}")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_followers_live_through_a_restart_and_nothing_is_logged(real: Grid, tmp_path: Path) -> None:
    """200 waiting followers once made a restart log 200 tracebacks."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = [sys.executable, "-c", PROGRAM, real.book.save(tmp_path / "grid.json"), tmp_path, str(port)]
    url, output = f"http://127.0.0.1:{port}", tmp_path / "stderr"
    async with await Chain.connect(real.book) as chain, AsyncExitStack() as stack:
        job_id = await a_claimed_job(real, chain, "restart")

        async def client(name: str) -> ServicesClient:
            account = Wallet.load(real.keys / name).account
            made = ServicesClient(url, account, real.book.chain_id, real.book.meta_scheduler)
            return await stack.enter_async_context(made)

        provider = await client("restart-p")
        customer = await client("restart-c")
        async with process_of(argv, output) as process:
            await until(lambda: is_pushed(provider, job_id, 0, b"before, "), within_s=120)
            found = [bytearray() for _ in range(FOLLOWERS)]
            tasks = [asyncio.create_task(keep_reading(customer, job_id, one)) for one in found]
            await until(lambda: all_are(found, b"before, "), within_s=120)
            process.send_signal(signal.SIGTERM)
            assert await end_of(process, output) == 0
        async with process_of(argv, output):
            await until(lambda: is_pushed(provider, job_id, 8, b"after", final=True), within_s=120)
            await asyncio.wait_for(asyncio.gather(*tasks), 120)
    assert {bytes(text) for text in found} == {b"before, after"}
    assert "Traceback" not in output.read_text(), output.read_text()[:5000]


@asynccontextmanager
async def process_of(argv: Sequence[str | Path], output: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield a process whose stderr is appended to the file; it is killed at the end if it still runs."""
    with output.open("ab") as file:
        process = await asyncio.create_subprocess_exec(*argv, stderr=file)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def end_of(process: asyncio.subprocess.Process, output: Path) -> int:
    """Return the exit status. If the process does not end, fail with the places where it waits."""
    try:
        return await asyncio.wait_for(process.wait(), 60)
    except TimeoutError:
        process.send_signal(signal.SIGUSR2)
        await until(lambda: "these are all" in output.read_text(), within_s=60)
        pytest.fail(f"it does not end: {output.read_text()[-20_000:]}")


async def keep_reading(client: ServicesClient, job_id: int, found: bytearray) -> None:
    """Read to the log's end, through outages of the services."""
    final = False
    while not final:
        try:
            chunk = await client.read_log(job_id, len(found), wait_s=20)
        except GridError:
            await asyncio.sleep(0.5)
            continue
        found += chunk.data
        final = chunk.final


async def is_pushed(provider: ServicesClient, job_id: int, offset: int, data: bytes, *, final: bool = False) -> bool:
    try:
        return await push_log(provider, job_id, offset, data, final=final) == offset + len(data)
    except GridError:
        return False


async def all_are(found: list[bytearray], text: bytes) -> bool:
    return all(one == text for one in found)


async def a_claimed_job(real: Grid, chain: Chain, label: str) -> int:
    people = await gather_people(real, chain, label)
    definition = JobDefinition(gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash="0" * 64)
    job_id = await people.customer.request_job(definition, 200 * CREDIT, "a job", approve_first=200 * CREDIT)
    await people.operator.meta_schedule(job_id, people.provider.address)
    await people.provider.claim_next()
    return job_id


async def life_of_a_job(real: Grid, chain: Chain, url: str) -> None:
    people = await gather_people(real, chain, "services")

    def client(name: str) -> ServicesClient:
        account = Wallet.load(real.keys / name).account
        return ServicesClient(url, account, real.book.chain_id, real.book.meta_scheduler)

    async with client("services-c") as customer, client("services-p") as provider, client("operator") as operator:

        async def answers() -> bool:
            try:
                return await customer.notices(1) == []
            except GridError:
                return False

        await until(answers, within_s=120)
        job = a_job()
        definition_hash = await customer.upload(job)
        definition = JobDefinition(
            gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash=definition_hash
        )
        job_id = await people.customer.request_job(definition, 200 * CREDIT, "a job", approve_first=200 * CREDIT)
        await people.operator.meta_schedule(job_id, people.provider.address)
        await operator.post_notice(job_id, "assigned", "cheapest")
        await people.provider.claim_next()

        fetched = await provider.fetch_definition(job_id, definition.definition_hash)
        assert fetched == job
        verify_resources(fetched, (await chain.job(job_id)).definition)
        await push_log(provider, job_id, 0, b"hello", final=True)
        chunk = await customer.read_log(job_id)
        assert (chunk.data, chunk.final) == (b"hello", True)
        assert [n.text for n in await customer.notices(job_id)] == ["cheapest"]
    await a_session_reads_it(real, url, job_id)


async def a_session_reads_it(real: Grid, url: str, job_id: int) -> None:
    """A session key reads the log of its wallet's job, until it is revoked."""
    wallet = Wallet.load(real.keys / "services-c").account
    key = SessionKey.create(wallet, Domain(real.book.chain_id, real.book.meta_scheduler), "read")
    async with ServicesClient(url, key, real.book.chain_id, real.book.meta_scheduler) as session:
        assert (await session.read_log(job_id, -3)).data == b"llo"
        await session.revoke(key.session)
        with pytest.raises(AccessDenied, match="revoked"):
            await session.read_log(job_id)


@pytest.fixture
def recursion_limit() -> Iterator[None]:
    """Restore the limit of this process, which `serve` lowers for its own."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("recursion_limit")
async def test_a_port_in_use_and_a_missing_book_are_clear_errors(real: Grid, tmp_path: Path) -> None:
    book = real.book.save(tmp_path / "grid.json")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServicesSettings(
            f"sqlite:///{tmp_path}/db", tmp_path / "secret", port=taken.getsockname()[1], book=book
        )
        with pytest.raises(ConfigurationError, match="cannot listen at 127.0.0.1:"):
            await serve(settings)
    with pytest.raises(ConfigurationError, match="no address book"):
        await serve(ServicesSettings(f"sqlite:///{tmp_path}/db", tmp_path / "secret", book=tmp_path / "none.json"))


async def test_without_shellcheck_it_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="shellcheck is not installed"):
        await serve(ServicesSettings(f"sqlite:///{tmp_path}/db", tmp_path / "secret", book=tmp_path / "none.json"))


async def test_the_store_outlives_requests_that_are_cut_off(tmp_path: Path) -> None:
    """A request once used the closed store in its clean-up, and blocked the process forever."""
    entered, ended = asyncio.Event(), []

    async def slow(_scope: object, _receive: object, _send: object) -> None:
        entered.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.2)
            ended.append(True)

    settings = ServicesSettings(f"sqlite:///{tmp_path}/db", tmp_path / "secret", port=0)
    with open_listeners(settings) as listeners:
        async with listening(slow, listeners):
            _, writer = await asyncio.open_connection(*listeners.http.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(entered.wait(), 60)
    assert ended
    writer.close()


async def test_connections_that_come_while_the_server_stops_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn tells only earlier ones to end. A request over a later one kept a thread, so the process did not end."""

    async def tell_no_connection(*_: object) -> None:
        """Do as uvicorn's shutdown does with a connection that it does not know yet."""

    monkeypatch.setattr(uvicorn.Server, "shutdown", tell_no_connection)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with serving_http(Response(), [listener], 1, timeout_keep_alive=300):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: any\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        with suppress(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 30)
        writer.close()
