"""What people type into the search of the site leads to the page that answers: its first hit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).with_name("search.mjs")
ANSWERS = {
    "run MPI": "mpi",
    "use a GPU": "gpu",
    "upload files": "files",
    "get my results": "files#get-results",
    "what will it cost": "time",
    "why does my job wait": "waiting",
    "cancel a job": "cancel",
    "Jupyter": "sessions#jupyter",
    "interactive session": "sessions",
    "chain jobs": "chain-jobs",
    "usage last month": "bills#usage",
    "receipt": "bills",
    "1,000 parameter sets": "sweep",
    "private image": "private-images",
    "share data between jobs": "files",
    "conda": "conda",
    "time limit": "time#the-time-limit-and-more-time",
    "out of memory": "waiting#out-of-memory",
}
OTHER_WORDS = {
    "why is my job pending": "waiting",
    "job stuck": "waiting",
    "my job failed": "waiting",
    "exit code 137": "waiting#out-of-memory",
    "command not found": "waiting#command-not-found-exit-status-127",
    "download output": "files#get-results",
    "s3 bucket": "files",
    "money back": "cancel",
    "kill a running job": "cancel",
    "docker image": "private-images",
    "singularity": "private-images",
    "environment variables": "environment",
    "password": "environment",
    "virtual environment": "conda",
    "python client": "python",
    "install": "start",
    "create a key": "start",
    "get credits": "start",
    "submit a job": "submit",
    "see the logs of my job": "submit#follow-a-job-and-read-its-log",
    "How much does it cost?": "time",
    "walltime": "time#the-time-limit-and-more-time",
    "top up a job": "time#the-time-limit-and-more-time",
    "invoice": "bills",
    "budget limit": "bills",
    "hyperparameter search": "sweep",
    "job dependencies": "chain-jobs",
    "sbatch script": "from-slurm",
    "slurm array": "from-slurm",
    "multi node": "mpi",
    "openmpi": "mpi",
    "pytorch": "gpu",
    "choose a cluster": "clusters",
    "which clusters are there": "clusters",
    "schedule a job every night": "schedule",
    "retry a failed job": "repeat",
    "ssh into my job": "sessions",
    "run a jupyter notebook": "sessions#jupyter",
    "web interface": "web",
    "register a cluster": "provider",
}


@pytest.fixture(scope="module")
def hits(site: Path) -> dict[str, list[str]]:
    queries = json.dumps([*ANSWERS, *OTHER_WORDS])
    done = subprocess.run(
        ["node", str(ENGINE), str(site)], input=queries, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("query", [*ANSWERS, *OTHER_WORDS])
def test_the_first_hit_answers(query: str, hits: dict[str, list[str]]) -> None:
    page, _, section = ({**ANSWERS, **OTHER_WORDS})[query].partition("#")
    place = f"how-to/{page}.html"
    assert hits[query][0].partition("#")[0] == place, hits[query][:5]
    if section:
        assert hits[query][0] == f"{place}#{section}"


def test_decisions_are_left_out_and_references_come_later(hits: dict[str, list[str]]) -> None:
    found = [place for places in hits.values() for place in places]
    assert len(found) > 1000
    assert not [place for place in found if place.startswith("decisions/")]
    first = [place for places in hits.values() for place in places[:2]]
    assert not [place for place in first if place.startswith("reference/client")]


def test_added_words_are_not_shown(site: Path) -> None:
    assert "<p hidden>also: " in (site / "how-to" / "gpu.html").read_text()
    index = json.loads((site / "search" / "search_index.json").read_text())
    pages = {entry["location"]: entry for entry in index["docs"]}
    assert "PyTorch" in pages["how-to/gpu.html"]["tags"]
    assert not [place for place, entry in pages.items() if "also: " in entry["text"]]
