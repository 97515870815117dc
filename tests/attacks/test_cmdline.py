"""Another user of a node reads the arguments of all processes while a customer's job runs there.

The names of steps are public, because `squeue` shows them too. A mark in a name proves that the reader saw srun.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import Containers, StoragePaths, render
from deepgrid.services.script_check import check_grammar
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import Definition
from tests.attacks.watching import Watcher, found_in, mark, watched
from tests.sbatch.bucket import Bucket, with_s5cmd
from tests.sbatch.room import Room
from tests.sbatch.sandbox import NO_TUN, Sandbox, has_tun
from tests.sbatch.store import Store
from tests.sbatch.support import Bench, Outcome
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, ended, leave, printed
from tests.waiting import until

STRANGER = "another user of the cluster"
DEFENCE = "programs get commands, values and credentials as variables, files and standard input"
RESOURCES = {"tasks": 2, "cpusPerTask": 1, "memPerCpu": 10, "gpus": 0}
A_MOMENT = "sleep 0.4"  # the time in which the reader can see the process that started it


def waiting(bench: Bench) -> None:
    """Let srun of the bench wait until the reader has seen it."""
    srun = bench.root / "bin" / "srun"
    until = f"until [ -e {bench.root}/seen ]; do sleep 0.05; done"
    srun.write_text(srun.read_text().replace("\n", f"\n{until}\n", 1))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "bench")
    waiting(bench)
    return bench


@pytest.fixture
def room(tmp_path: Path) -> Room:
    room = Room(tmp_path)
    waiting(room)
    for name in ("apptainer", "enroot"):
        program = room.root / "bin" / name
        program.write_text(program.read_text().replace("\n", f"\n{A_MOMENT}\n", 1))
    return room


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    waiting(sandbox)
    yield sandbox
    sandbox.remove()


def definition(head: Mapping[str, Any], *steps: Mapping[str, Any]) -> Definition:
    job = Definition.model_validate({"resources": RESOURCES, **head, "steps": steps})
    check_grammar(render(job, StoragePaths()))
    return job


def run(command: str, **more: Any) -> dict[str, Any]:
    return {"run": {"command": command, **more}}


def env(name: str, value: str) -> list[dict[str, str]]:
    return [{"key": name, "value": value}]


def only_the_name(watcher: Watcher, name: str, secret: str) -> None:
    """Check that the reader saw the step's name and never the secret."""
    assert found_in(watcher.seen, name)
    assert found_in(watcher.seen, secret) == []


def control_flow(name: str, secret: str, folder: Path) -> tuple[dict[str, Any], ...]:
    """Return steps of every kind, with the secret in every field that may contain one."""
    inner = run(f": {secret}; {A_MOMENT}")
    return (
        {"name": name, **run(f": '{secret}'\n{A_MOMENT}", env=env("OWN", secret), workDir=str(folder))},
        run(f'echo "KEPT={secret}" >>"$DEEPSQUARE_ENV"'),
        {"if": f'"$KEPT" == {secret}', **run(f': "$KEPT"; {A_MOMENT}')},
        {"for": {"parallel": False, "items": [secret], "steps": [run(f': "$item" {secret}; {A_MOMENT}')]}},
        {"for": {"parallel": True, "items": [f"{secret}1", f"{secret}2"], "steps": [inner]}},
        {**run(f": {secret}; exit 3"), "catch": [inner], "finally": [inner]},
        {"launch": {"handleName": "h", "steps": [inner]}},
        {"dependsOn": ["h"], **inner},
        {
            "module": {
                "source": "m", "inputs": env("IN", secret), "outputs": ["OUT"], "exportEnvAs": "P",
                "steps": [run(f'echo "OUT={secret}" >>"$DEEPSQUARE_ENV"; : "$IN"; {A_MOMENT}')],
            }
        },
        run(f'[ "$P_OUT" = {secret} ]; {A_MOMENT}'),
    )  # fmt: skip


@pytest.mark.attack(
    "reads /proc/*/cmdline and environ while the steps of a job run",
    attacker=STRANGER, gain="names of steps", defence=DEFENCE,
)  # fmt: skip
def test_steps_show_only_their_names(bench: Bench) -> None:
    name, secret = mark(), mark()
    job = definition({"env": env("JOB", secret)}, *control_flow(name, secret, bench.root / "work"))
    with watched(name, secret, flag=bench.root / "seen") as watcher:
        outcome = bench.run(job)
    assert outcome.status == 0, outcome.output
    only_the_name(watcher, name, secret)


@pytest.mark.attack(
    "reads the same while input and output go over HTTP with presigned URLs",
    attacker=STRANGER, gain="names of files", defence=DEFENCE,
)  # fmt: skip
def test_transfers_over_http_show_only_names_of_files(bench: Bench, store: Store) -> None:
    name, secret = mark(), mark()
    store.files[f"/{secret}/data?pass={secret}"] = b"content"
    store.delay_s = 0.4
    where = {"http": {"url": f"{store.url}/{secret}/data?pass={secret}"}}
    job = definition({"input": where, "output": where}, {"name": name, **run('echo x >"$DEEPSQUARE_OUTPUT/file"')})
    with watched(name, secret, flag=bench.root / "seen") as watcher:
        outcome = bench.run(job)
    assert (outcome.status, len(store.received)) == (0, 1), outcome.output
    only_the_name(watcher, name, secret)


@pytest.mark.attack(
    "reads the same while input and output use a bucket with the customer's keys",
    attacker=STRANGER, gain="names of buckets and folders", defence=DEFENCE,
)  # fmt: skip
def test_transfers_with_s3_show_only_names_of_buckets_and_folders(bench: Bench, bucket: Bucket) -> None:
    name, secret = mark(), mark()
    bucket.put("in/data", b"x" * 1_000_000)
    with_s5cmd(bench)
    keys = {"accessKeyId": f"id{secret}", "secretAccessKey": f"key{secret}"}
    head = {"input": bucket.at("/in/", **keys), "output": bucket.at("/out/", **keys), "continuousOutputSync": True}
    step = {"name": name, **run(f'cp "$DEEPSQUARE_INPUT/data" "$DEEPSQUARE_OUTPUT"; {A_MOMENT}')}
    with watched(name, secret, flag=bench.root / "seen") as watcher:
        outcome = bench.run(definition(head, step))
    assert outcome.status == 0, outcome.output
    assert "out/data" in bucket.files()
    only_the_name(watcher, name, secret)


@pytest.mark.attack(
    "reads the same while containers are fetched with a registry account and started",
    attacker=STRANGER, gain="names of images, mounts and users", defence=DEFENCE,
)  # fmt: skip
@pytest.mark.parametrize(
    ("containers", "more"),
    [(Containers(), {"apptainer": True}), (Containers(), {}), (Containers(pyxis=True), {})],
    ids=["apptainer", "enroot", "pyxis"],
)
def test_containers_show_only_images_mounts_and_users(room: Room, containers: Containers, more: dict[str, Any]) -> None:
    name, secret = mark(), mark()
    container = {"image": "a/b:1", "registry": "r.example", "username": "me", "password": secret, **more}
    step = run(
        f": {secret}; {A_MOMENT}", env=env("OWN", secret), workDir=f"{room.root}/folder", container=container
    )  # fmt: skip
    room.containers = containers
    with watched(name, secret, flag=room.root / "seen") as watcher:
        outcome = room.run(
            definition({"env": env("JOB", secret)}, {"name": name, **step}),
            SLURM_STEP_ID="3", SLURM_PROCID="0", HOME=str(room.root),
        )  # fmt: skip
    assert outcome.status == 0, outcome.output
    only_the_name(watcher, name, secret)
    assert len(room.noted("argv")) > 0
    assert not any(secret in path.read_bytes().decode() for path in room.noted("argv"))


def private_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def in_a_network(sandbox: Sandbox, name: str, secret: str, keys: list[str]) -> Outcome:
    peer = {"publicKey": private_key(), "preSharedKey": keys[1], "allowedIPs": ["10.0.0.2/32"]}
    interfaces = [
        {"wireguard": {"privateKey": keys[0], "address": ["10.0.0.1/24"], "peers": [peer]}},
        {"bore": {"boreAddress": "bore.test:2200", "targetPort": 80, "secret": secret}},
    ]
    step = run(f": {secret}; sleep 1", network="slirp4netns", mapUid=0, customNetworkInterfaces=interfaces)
    return sandbox.run(definition({"env": env("JOB", secret)}, {"name": name, **step}))


@pytest.mark.attack(
    "reads the same while a step's network, WireGuard and tunnel start",
    attacker=STRANGER, gain="addresses of tunnels and name servers", defence=DEFENCE,
)  # fmt: skip
def test_networks_show_only_addresses(sandbox: Sandbox) -> None:
    name, secret, keys = mark(), mark(), [private_key(), private_key()]
    with watched(name, secret, *keys, flag=sandbox.root / "seen") as watcher:
        outcome = in_a_network(sandbox, name, secret, keys)
    assert outcome.status == (0 if has_tun() else 69), outcome.output
    assert has_tun() or NO_TUN in outcome.output
    assert all(found_in(watcher.seen, one) == [] for one in keys)
    only_the_name(watcher, name, secret)


def on_nodes(name: str, secret: str, folder: Path, storage: StoragePaths) -> str:
    """Return a script whose steps print a line and wait for a file."""
    steps = (
        run(f": {secret}\n{A_MOMENT}", env=env("OWN", secret)),
        {"name": name, **run(f"echo up; cd {folder}; : {secret}; {WAIT_FOR_LEAVE}")},
    )
    return render(definition({"env": env("JOB", secret), "enableLogging": True}, *steps), storage)


@pytest.mark.attack(
    "reads the same on login node and nodes of a real cluster: submission, queue, steps, logs, cancellation",
    attacker="another user of the cluster", gain="names of claims and steps", defence=DEFENCE,
)  # fmt: skip
async def test_a_claim_shows_only_names_from_its_submission_to_its_end(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    name, secret = mark(), mark()
    storage = StoragePaths.under(str(Path(box.settings.grid_root).parent / "storage"))
    for root in storage.roots:
        Path(root).mkdir(parents=True, exist_ok=True)
        Path(root).chmod(0o1777)
    seen = box.folder(key) / "seen"
    with watched(name, key.name, secret, flag=seen) as watcher:
        await cluster.submit(key, on_nodes(name, secret, box.folder(key) / "run", storage), SMALL)
        await printed(cluster, key)
        await cluster.set_time_limit(key, 6)
        await until(seen.exists)
        leave(box, key)
        state = await ended(monitor, key)
        await cluster.cancel(key)
        await cluster.acknowledge(key)
    assert state.exit_status == 0, (box.folder(key) / "output.log").read_text()
    assert found_in(watcher.seen, key.name)
    only_the_name(watcher, name, secret)
