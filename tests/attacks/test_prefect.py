"""A job's account against Prefect's API, server and database on the one-machine grid."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
import websockets

from deepgrid.findings import Level
from deployments.cli.serving import examine_prefect
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.processes import ProcessTable
from tests.attacks.local_account import Attacker, attacker_beside_a_grid

pytestmark = pytest.mark.long

POOL = "processes"
SECRET = "kept-in-a-block"
COMMAND = {"command": "touch /tmp/owned"}


@dataclass
class Target:
    """The server, the attacking account, and the folder of its state."""

    attacker: Attacker
    prefect: PrefectServer
    postgres: Postgres
    table: ProcessTable
    state: Path

    def api(self, path: str) -> str:
        return f"{self.prefect.ui_url}/api/{path}"

    def ids(self) -> dict[str, str]:
        """Return the ids of objects in Prefect, which the attacker may know."""
        ask = self.prefect.ask
        flow = ask("POST", "/api/flows/", {"name": "claim_jobs"})["id"]
        run = ask("POST", "/api/flow_runs/filter", {})[0]["id"]
        return {"flow": flow, "run": run}


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """Prefect, started like the grid does, with a pool, a run and a block with a secret."""
    with attacker_beside_a_grid() as (attacker, state):
        ports, table = PortBook(state / "ports.json"), ProcessTable(state)
        postgres = Postgres(state / "postgres", ports.port("postgres"))
        prefect = PrefectServer(state / "prefect", ports.port("prefect-server"))
        try:
            postgres.prepare()
            for daemon in (postgres.daemon(), prefect.daemon(postgres.url("prefect"))):
                table.start(daemon)
                table.wait_ready(daemon)
                postgres.create_database("prefect")
            one = Target(attacker, prefect, postgres, table, state)
            fill(prefect)
            yield one
        finally:
            for name in reversed(table.names()):
                table.stop(name)


def fill(prefect: PrefectServer) -> None:
    ask = prefect.ask
    assert ask("POST", "/api/work_pools/", {"name": POOL, "type": "process"})
    flow = ask("POST", "/api/flows/", {"name": "claim_jobs"})
    assert ask("POST", "/api/flow_runs/", {"flow_id": flow["id"], "state": {"type": "SCHEDULED"}})
    kind = ask("POST", "/api/block_types/", {"name": "Kept", "slug": "kept"})
    fields = {"title": "Kept", "type": "object", "properties": {"text": {"type": "string"}}, "secret_fields": ["text"]}
    schema = ask("POST", "/api/block_schemas/", {"fields": fields, "block_type_id": kind["id"]})
    document = {"name": "one", "data": {"text": SECRET}, "block_type_id": kind["id"], "block_schema_id": schema["id"]}
    assert ask("POST", "/api/block_documents/", document)
    shown = ask("POST", "/api/block_documents/filter", {"include_secrets": True})
    assert shown[0]["data"]["text"] == SECRET, "the login works"


@pytest.mark.attack(
    "creates a deployment with its own command in Prefect, which the worker would run",
    attacker="a job's account on the grid's machine",
    gain="nothing: no deployment, no command",
    defence="Prefect's API requires a login from a file of mode 0600",
)
def test_no_deployment_with_a_foreign_command_is_created(target: Target) -> None:
    deployment = {"name": "mine", "flow_id": target.ids()["flow"], "work_pool_name": POOL, "job_variables": COMMAND}
    answer = target.attacker.request(target.api("deployments/"), "POST", deployment)
    assert answer.status == 401
    assert target.prefect.ask("POST", "/api/deployments/count") == 0
    pool = {"base_job_template": {"variables": {}, "job_configuration": COMMAND}}
    assert target.attacker.request(target.api(f"work_pools/{POOL}"), "PATCH", pool).status == 401
    assert COMMAND["command"] not in json.dumps(target.prefect.ask("GET", f"/api/work_pools/{POOL}"))


@pytest.mark.attack(
    "reads runs, variables, logs and blocks with include_secrets=true from Prefect",
    attacker="a job's account on the grid's machine",
    gain="nothing",
    defence="every path of the API but the health check requires the login",
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "block_documents/filter"),
        ("GET", "block_types/slug/kept/block_documents/name/one?include_secrets=true"),
        ("POST", "flow_runs/filter"), ("POST", "variables/filter"), ("POST", "logs/filter"), ("POST", "events/filter"),
        ("POST", "work_pools/filter"), ("GET", "admin/settings"), ("GET", "admin/version"), ("GET", "openapi.json"),
        ("POST", "flows/count"), ("GET", "csrf-token?client=me"),
    ],
)  # fmt: skip
def test_nothing_can_be_read_without_the_login(target: Target, method: str, path: str) -> None:
    body = {"include_secrets": True} if method == "POST" else None
    answer = target.attacker.request(target.api(path), method, body)
    assert answer.status in (401, 404)
    assert SECRET not in answer.text and "claim_jobs" not in answer.text


@pytest.mark.attack(
    "clears Prefect's database, starts, cancels and deletes runs, sends events that start flows",
    attacker="a job's account on the grid's machine",
    gain="nothing changes",
    defence="every path of the API but the health check requires the login",
)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "admin/database/clear", {"confirm": True}), ("POST", "admin/database/drop", {"confirm": True}),
        ("DELETE", "flow_runs/{run}", None), ("DELETE", "flows/{flow}", None), ("DELETE", f"work_pools/{POOL}", None),
        ("POST", "flow_runs/{run}/set_state", {"state": {"type": "CANCELLED"}, "force": True}),
        ("POST", "flow_runs/", {"flow_id": "{flow}"}), ("POST", "variables/", {"name": "mine", "value": 1}),
        ("POST", "events", []), ("POST", "automations/", {"name": "mine"}),
    ],
)  # fmt: skip
def test_nothing_can_be_changed_without_the_login(
    target: Target, method: str, path: str, body: dict[str, object] | None
) -> None:
    ids = target.ids()
    answer = target.attacker.request(target.api(path.format(**ids)), method, body)
    assert answer.status == 401
    assert target.ids() == ids
    assert target.prefect.ask("POST", "/api/flow_runs/count") == 1
    assert target.prefect.ask("GET", f"/api/flow_runs/{ids['run']}")["state"]["type"] == "SCHEDULED"
    assert target.prefect.ask("POST", "/api/variables/count") == 0


@pytest.mark.attack(
    "disguises a request as Prefect's health check, or as one with a login",
    attacker="a job's account on the grid's machine",
    gain="the health check's answer",
    defence="Prefect compares the whole path and the whole login, which has 192 random bits",
)
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("flows/count/health", {}), ("health/../flows/count", {}), ("%2e%2e/api/flows/count", {}),
        ("flows/count?x=/health", {}), ("/flows/count", {}), ("flows/count#/health", {}),
        ("flows/count", {"Host": "127.0.0.1/api/health?"}), ("flows/count", {"X-Original-URL": "/api/health"}),
        ("flows/count", {"Authorization": "Basic"}), ("flows/count", {"Authorization": "Bearer deepgrid:"}),
        ("flows/count", {"Authorization": "Basic " + b64encode(b"deepgrid:").decode()}),
        ("flows/count", {"Authorization": "Basic " + b64encode(b":").decode()}),
        ("flows/count", {"Authorization": "Basic !"}), ("flows/count", {"X-Forwarded-For": "127.0.0.1"}),
        ("health", {"X-HTTP-Method-Override": "DELETE"}),
    ],
)  # fmt: skip
def test_a_disguised_request_is_refused(target: Target, path: str, headers: dict[str, str]) -> None:
    answer = target.attacker.request(target.api(path), "POST", {}, **headers)
    assert answer.status in (400, 401, 404, 405)


@pytest.mark.attack(
    "opens Prefect's websockets, which carry events, logs and scheduled runs",
    attacker="a job's account on the grid's machine",
    gain="a connection that is closed at once",
    defence="their first message must contain the login",
)
@pytest.mark.parametrize("hello", [{"type": "auth", "token": "deepgrid:guess"}, {"type": "filter", "filter": {}}])
@pytest.mark.parametrize("path", ["events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled"])
async def test_websockets_without_the_login_are_closed(target: Target, path: str, hello: dict[str, object]) -> None:
    url = target.api(path).replace("http", "ws", 1)
    for protocols in (None, ["prefect"]):
        with pytest.raises((websockets.ConnectionClosed, websockets.InvalidHandshake)):
            async with websockets.connect(url, subprotocols=protocols, proxy=None) as socket:  # type: ignore[arg-type]
                await socket.send(json.dumps(hello))
                pytest.fail(f"answered {await socket.recv()!r}")


@pytest.mark.attack(
    "looks for the login in processes, files and logs",
    attacker="a job's account on the grid's machine",
    gain="nothing",
    defence="the login is in the environment of processes of another account and in files of mode 0600",
)
def test_the_login_cannot_be_found(target: Target) -> None:
    login = target.prefect.login()
    password = login.partition(":")[2]
    pid = target.table.pid("prefect-server")
    assert login.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    assert not target.attacker.can_read(f"/proc/{pid}/environ")
    assert not target.attacker.can_read(f"/proc/{pid}/mem")
    assert not target.attacker.can_read(target.prefect.login_file)
    found = target.attacker.run(["grep", "-rslF", "-e", password, str(target.state)])
    assert found.stdout == ""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert password.encode() not in process.read_bytes()
        except OSError:
            continue
    assert password not in target.table.log_path("prefect-server").read_text()


@pytest.mark.attack(
    "connects to PostgreSQL for Prefect's data without the password, or with another account's name",
    attacker="a job's account on the grid's machine",
    gain="nothing",
    defence="PostgreSQL requires the password (scram-sha-256) on loopback too; its file has mode 0600",
)
@pytest.mark.parametrize("user", ["postgres", "deepgrid-job", "root"])
@pytest.mark.parametrize("password", ["", "postgres"])
async def test_the_database_requires_its_password(target: Target, user: str, password: str) -> None:
    with pytest.raises((asyncpg.PostgresError, OSError)):
        await asyncpg.connect(
            host="127.0.0.1", port=target.postgres.port, user=user, password=password, database="prefect"
        )
    assert not target.attacker.can_read(target.state / "postgres" / "password")
    assert not target.attacker.can_read(target.state / "postgres" / "data" / "pg_hba.conf")


async def test_the_doctor_finds_the_api_closed(target: Target) -> None:
    assert (await examine_prefect(target.prefect.environment()["PREFECT_API_URL"])).level is Level.GOOD
