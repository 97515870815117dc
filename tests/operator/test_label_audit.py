"""An audit: the job that measures a node, and its result against the claims of the cluster."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.benchmark import hpl
from deepgrid.client.workflow import read_workflow
from deepgrid.errors import InputError, SlurmError
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.operator.label_audit import audit_of, disagreements, findings

DATA = Path(__file__).parents[1] / "benchmark" / "data"
CLAIMS = (
    Label("arch", "x86_64"),
    Label("compute.benchmark", "hpl"),
    Label("compute.gflops", "4.00"),
    Label("cpu", "amd-epyc"),
    Label("name", "alpha"),
    Label("os", "linux"),
)
ALPHA = Provider(
    "0x" + "a" * 40, Hardware((0, 0), (4, 4), (8000, 8000)), Prices(0, 1, 0), CLAIMS, approved=True, banned=False
)


def claiming(key: str, value: str) -> Provider:
    return replace(ALPHA, labels=tuple(replace(one, value=value) if one.key == key else one for one in CLAIMS))


def output() -> str:
    """Return what the job prints: the node, and 1.944 GFLOPS."""
    return f"{(DATA / 'machine.txt').read_text()}\n== end\n{(DATA / 'hpl.txt').read_text()}"


@pytest.mark.parametrize(
    ("provider", "wrong"),
    [
        (ALPHA, ()),
        (claiming("compute.gflops", "0.40"), ()),  # a node that does more than its share is no fault
        (claiming("compute.gflops", "5.10"), ()),  # within the tolerance
        (claiming("compute.gflops", "5.30"), ("compute.gflops per node",)),
        (claiming("compute.gflops", "4000000"), ("compute.gflops per node",)),
        (claiming("cpu", "intel-xeon"), ("cpu",)),
    ],
)
def test_claims_are_compared_with_one_node(provider: Provider, wrong: tuple[str, ...]) -> None:
    assert disagreements(findings(audit_of(provider, 10), output())) == wrong


def test_output_without_a_verified_result_proves_nothing() -> None:
    for said in ("", "compute.gflops 4000\n", output().replace("PASSED", "FAILED")):
        with pytest.raises(SlurmError):
            findings(audit_of(ALPHA, 10), said)


def test_a_cluster_without_a_claim_is_not_audited() -> None:
    for labels in ((), (Label("compute.gflops", "nan"),), (Label("compute.gflops", "-1"),)):
        with pytest.raises(InputError, match="claims no rate of its CPUs"):
            audit_of(replace(ALPHA, labels=labels), 10)
    with pytest.raises(InputError):
        audit_of(claiming("compute.benchmark", "hpl-mxp"), 10)


async def test_the_job_is_a_workflow_with_all_cpus_of_a_node() -> None:
    audit = audit_of(ALPHA, 10)
    workflow = await read_workflow(audit.workflow)
    assert list(workflow.validate()) == []
    resources = audit.workflow["resources"]
    assert (resources["tasks"], resources["cpusPerTask"]) == (1, 4)
    assert resources["memPerCpu"] * 4 <= 8000
    assert (audit.problem.p, audit.problem.q, audit.problem.samples) == (2, 2, 3)


@pytest.mark.long
def test_the_job_prints_what_the_comparison_needs(tmp_path: Path) -> None:
    audit = audit_of(claiming("compute.gflops", "0.02"), 1, cpus_per_rank=4)
    command = audit.workflow["steps"][0]["run"]["command"]
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(hpl.parse(done.stdout)[0].values) == 3
    assert [one.key for one in findings(audit, done.stdout)][-1] == "compute.gflops per node"
