"""Every example does what its comment says, with the recorder that runs one task and (long) on a real cluster."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid import modules
from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import Definition, parse
from tests.sbatch.bucket import Bucket, with_s5cmd
from tests.sbatch.examples import CONTAINER_EXAMPLES, CONTAINER_EXAMPLES_WITH_STAND_INS, FOLDER
from tests.sbatch.slurm_support import programs as programs
from tests.sbatch.slurm_support import run
from tests.sbatch.slurm_support import storage as storage
from tests.sbatch.store import SHOWN, Store
from tests.sbatch.support import Bench, lint, without_progress
from tests.slurm.support import Box

# The output of each example without the names of steps, and its exit status if it is not 0.
PRINTS: dict[str, list[str]] = {
    "anchors": ["version 1.10 with bash", "enabled is true", "still version 1.10"],
    "catch": ["caught 42", "and on"],
    "condition": ["large, and the weather is fine"],
    "deep": ["leaving", "leaving", "caught 9"],
    "depends-on": ["left", "right"],
    "env-file": ['5 $, "cheap"', "first line", "second line"],
    "environment": ["from the job", "from the step", "from the file"],
    "exit-code": ["this step works", "this step exits with status 3"],
    "finally": ["tidied up"],
    "for-items": ["Hello, Ada", "Hello, Grace", "Hello, Mary Jane"],
    "for-nested": ["a1", "a2", "a3", "row a is done", "b1", "b2", "b3", "row b is done"],
    "for-parallel": ["all are here"] * 4,
    "for-range": ["up 0", "up 5", "up 10", "down 2", "down 1", "down 0"],
    "groups": ["one", "two"],
    "input-http": ["Input contains:", "./number", "the number is 42"],
    "launch-kept": ["the last step", "the launch ends last"],
    "launch-server": ["the server's answer", "the server is gone"],
    "module": [
        "Hello, Ada Lovelace", "Hello, Ada Lovelace", "2 greetings, to an unknown person",
        "work", "it was measured, and BEGAN is unknown",
    ],
    "module-go": ["step 0, tasks 1", "one", "step 1, tasks 1", "two", "nothing to do"],
    "output-http": ["Output contains:", "./result.txt", "-- The output is here: --", SHOWN, "-" * 25],
    "retry": ["attempt 1", "attempt 1 failed", "attempt 2"],
    "s3": ["Input contains:", "./word", "HELLO", "Output contains:", "./word"],
    "shells": ["sh has no arrays", "bash has arrays"],
    "storage": ["writable"] * 8 + ["job's own", "results"],
    "user-mapping": ["I am 0:0"],
    "work-dir": ["storage", "/tmp/deepgrid example/here"],
}  # fmt: skip
STATUS = {"exit-code": 3, "finally": 3, "output-http": 3}
ON_SLURM = {
    **PRINTS,
    "each-node": ["wrote to the disk of a node"] * 4,
    "tasks": ["task 0 of 4", "task 1 of 4", "task 2 of 4", "task 3 of 4", "unbound", "unbound"],
}
ELSEWHERE = {"hello-world", "two-nodes", "sleep", "impossible"}  # these run in the tests of the whole grid
ELSEWHERE |= {path.stem for path in FOLDER.glob("network-*.yaml")}  # and in functions of networks
UNORDERED = {"tasks", "launch-kept"}  # parallel steps print in any order


@pytest.fixture
def bench(bench: Bench) -> Bench:
    with_s5cmd(bench)
    return bench


@dataclass
class Servers:
    """The servers of the examples."""

    store: Store
    bucket: Bucket


@pytest.fixture
def servers(store: Store, bucket: Bucket) -> Servers:
    bucket.put("in/word", b"hello\n")
    return Servers(store, bucket)


def example(name: str, servers: Servers) -> Definition:
    """Return an example with the test's web server and bucket in place of its own."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("number")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"42\n"))
    servers.store.files["/number.tar.gz"] = buffer.getvalue()
    text = (FOLDER / f"{name}.yaml").read_text().replace("http://127.0.0.1:8000", servers.store.url)
    loaded = parse(text.replace("http://127.0.0.1:9000", servers.bucket.url), name)
    return modules.resolve(loaded, str(FOLDER)).model


def check_servers(name: str, servers: Servers) -> None:
    """Check that the servers received the output of the example."""
    if name == "output-http":
        assert servers.store.received == {"/result": b"result\n"}
    if name == "s3":
        assert servers.bucket.files()["out/word"] == b"HELLO\n"


def printed(name: str, output: str) -> list[str]:
    """Return the lines that the job itself printed."""
    lines = without_progress(output)
    return sorted(lines) if name in UNORDERED else lines


def test_every_example_is_run_by_some_test() -> None:
    in_containers = CONTAINER_EXAMPLES.keys() | CONTAINER_EXAMPLES_WITH_STAND_INS
    assert {path.stem for path in FOLDER.glob("*.yaml")} == ON_SLURM.keys() | ELSEWHERE | in_containers


@pytest.mark.recorder("test_an_example_does_the_same_on_slurm")
@pytest.mark.parametrize("name", PRINTS)
def test_an_example_does_what_it_says(name: str, bench: Bench, servers: Servers) -> None:
    job = example(name, servers)
    lint(job)
    outcome = bench.run(job)
    assert printed(name, outcome.output) == PRINTS[name]
    assert outcome.status == STATUS.get(name, 0)
    assert bench.left_behind() == []
    check_servers(name, servers)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ON_SLURM)
async def test_an_example_does_the_same_on_slurm(
    name: str, servers: Servers, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths,
    programs: Path,
) -> None:  # fmt: skip
    status, output = await run(example(name, servers), cluster, monitor, key, box, storage, programs)
    assert printed(name, output) == ON_SLURM[name]
    assert status == STATUS.get(name, 0)
    check_servers(name, servers)
