"""The programs' scripts and inputs, and the parsers on recorded real outputs (`data/`)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deepgrid.benchmark import hpl, machine, measuring
from deepgrid.benchmark.figures import Samples
from deepgrid.benchmark.measuring import Site
from deepgrid.benchmark.settings import PROGRAMS, BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.sbatch import StoragePaths
from deepgrid.scheduling.speed import measured_speeds

DATA = Path(__file__).parent / "data"
USUAL = BenchmarkSettings()
TWO_NODES = Hardware((0, 0), (8, 8), (16000, 16000))
ONE_NODE = Hardware((0,), (3,), (4000,))
ALL_TIME = 10**9


def recorded(program: Program) -> str:
    return (DATA / f"{program}.txt").read_text()


@pytest.mark.parametrize(
    ("ranks", "grid"), [(1, (1, 1)), (2, (2, 1)), (4, (2, 2)), (7, (7, 1)), (8, (4, 2)), (15, (5, 3)), (64, (8, 8))]
)
def test_any_number_of_ranks_makes_a_grid_as_square_as_can_be(ranks: int, grid: tuple[int, int]) -> None:
    assert hpl.process_grid(ranks) == grid


def test_the_matrix_takes_the_share_of_memory() -> None:
    """The figures of the grid's older clients: 0.5 of two nodes with 128460 MB in blocks of 512."""
    assert hpl.whole_blocks(hpl.order_in_memory(128460, 2, 0.5), 512) == 89600


def test_the_time_budget_bounds_the_matrix() -> None:
    """A matrix of order n takes 2/3 n^3 operations."""
    long = hpl.problem_for(TWO_NODES, BenchmarkSettings(hpl_seconds=ALL_TIME))
    short = hpl.problem_for(TWO_NODES, BenchmarkSettings(hpl_seconds=1, gflops_per_cpu=1.0, block_size=64))
    assert (long.n, long.p, long.q) == (31488, 4, 4)
    assert 0.8 * 16e9 < 2 / 3 * short.n**3 <= 16e9
    assert short.n % 64 == 0


def test_every_node_counts_as_the_smallest_one() -> None:
    uneven = Hardware((0, 0), (8, 3), (16000, 4000))
    problem = hpl.problem_for(uneven, BenchmarkSettings(hpl_seconds=ALL_TIME))
    assert (problem.ranks_per_node, problem.p * problem.q) == (3, 6)
    assert problem.n == hpl.whole_blocks(hpl.order_in_memory(4000, 2, 0.5), 192)


def test_a_rank_may_have_several_cpus() -> None:
    problem = hpl.problem_for(TWO_NODES, BenchmarkSettings(cpus_per_rank=4))
    assert (problem.p, problem.q, problem.ranks_per_node) == (2, 2, 2)
    assert "--cpus-per-task=4" in hpl.options(problem)
    assert "OMP_NUM_THREADS=4" in hpl.script(problem, USUAL)


def test_hpl_reads_its_input_by_lines_with_the_matrix_once_per_sample() -> None:
    lines = hpl.problem_for(TWO_NODES, BenchmarkSettings(hpl_seconds=ALL_TIME)).input_file().splitlines()
    assert len(lines) == 31
    assert [lines[at].split()[0] for at in (5, 7, 10, 11)] == ["31488", "192", "4", "4"]
    assert lines[4].split()[0] == "3"
    assert lines[5].split() == ["31488", "31488", "31488", "Ns"]


def test_the_rates_of_the_fastest_problem_count() -> None:
    assert hpl.parse(recorded("hpl")) == (Samples((1.944,)), "hpl")
    faster = "".join(f"WC10R8C4     9000   192     4     4    1.00   {rate}\n" for rate in ("1.234e+02", "1.0e+02"))
    assert hpl.parse(recorded("hpl") + faster) == (Samples((123.4, 100.0)), "hpl")


def test_the_rates_of_nodes_alone_are_added_sample_by_sample() -> None:
    """The label is the rate of the whole cluster, as without single-node mode."""
    node = "deepgrid-node {}\n" + recorded("hpl")
    again = "WR11C2R4        2176   128     2     2               3.54              2.056e+00\n"
    rates, which = hpl.parse(node.format("n1") + again + node.format("n2") + again)
    assert (rates.values, which) == ((pytest.approx(3.888), pytest.approx(4.112)), "hpl")
    with pytest.raises(SlurmError, match="no result"):
        hpl.parse(node.format("n1") + "deepgrid-node n2\nmpirun was unable to start\n")


def test_a_wrong_solution_is_no_measurement() -> None:
    with pytest.raises(SlurmError, match="did not pass"):
        hpl.parse(recorded("hpl").replace("PASSED", "FAILED"))
    with pytest.raises(SlurmError, match="no result"):
        hpl.parse("mpirun was unable to start\n")


MXP = """\
T/V                N    NB     P     Q               Time                 Gflops   Refine  Iter  Gflops
HPL_AI   WR01C2R4       95000  1024     2     1              6.10             9.433e+04  7.15  2  4.4e+04
HPL_AI   WRC01          97000  1024     2     1              6.30             9.651e+04  7.15  2  4.523e+04
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.0000027 ...... PASSED
"""


def test_a_log_of_hpl_mxp_is_read_and_the_label_names_it() -> None:
    """The rate without refinement counts, as in the labels of older clients. Some results have the variant WRC01."""
    assert hpl.parse(MXP) == (Samples((96510.0,)), "hpl-mxp")
    assert hpl.parse(MXP.replace("HPL_AI  ", "HPL-MxP ")) == (Samples((96510.0,)), "hpl-mxp")
    labels = measuring.read("hpl", MXP, USUAL).labels
    assert labels == (Label("compute.benchmark", "hpl-mxp"), Label("compute.gflops", "96510.00"))


@pytest.mark.parametrize("rate", ["nan", "-nan", "inf"])
def test_a_rate_that_is_not_a_number_is_a_failure(rate: str) -> None:
    with pytest.raises(SlurmError, match="not a number"):
        hpl.parse(MXP.replace("9.433e+04", rate))


def test_gpus_are_measured_by_hpl_mxp_one_per_rank() -> None:
    settings = BenchmarkSettings(hpl_mxp="hpl.sh --xhpl-ai --dat HPL.dat")
    gpus = Hardware((2, 2, 2), (16, 16, 16), (64000, 64000, 64000))
    problem = hpl.problem_for(gpus, settings)
    assert (problem.p, problem.q, problem.ranks_per_node, problem.cpus_per_rank) == (3, 2, 2, 8)
    assert "--gpus-per-node=2" in hpl.options(problem)
    assert hpl.script(problem, settings).endswith("-n 6 hpl.sh --xhpl-ai --dat HPL.dat")
    assert not hpl.problem_for(TWO_NODES, settings).by_gpus, "CPU clusters are measured by HPL"


@pytest.mark.parametrize(("gpus", "which"), [(2, "hpl-gpu"), (0, "hpl")])
def test_a_vendors_hpl_on_gpus_is_not_taken_for_a_rate_of_cpus(gpus: int, which: str) -> None:
    settings = BenchmarkSettings(hpl_mxp="vendor-hpl HPL.dat")
    site = Site(Hardware((gpus,), (16,), (64000,)), StoragePaths())
    asked = measuring.request("hpl", site, settings)
    assert Label("compute.benchmark", which) in measuring.read("hpl", recorded("hpl"), settings, asked).labels
    assert measured_speeds(cluster_with(which)).keys() == ({"gpu"} if gpus else {"serial"})


def cluster_with(which: str) -> Provider:
    """Return a cluster whose rate was measured by this kind of HPL."""
    labels = (Label("compute.benchmark", which), Label("compute.gflops", "100.00"))
    return Provider("0x1", Hardware((2,), (16,), (64000,)), Prices(0, 1, 0), labels, approved=True, banned=False)


def test_the_machine_is_named_as_customers_ask_for_it() -> None:
    assert measuring.read("machine", recorded("machine"), USUAL).labels == (
        Label("arch", "x86_64"),
        Label("cpu", "amd-epyc"),
        Label("cpu.microarch", "x86_64_v4"),
        Label("os", "linux"),
    )


def test_a_gpu_is_named_where_there_is_one() -> None:
    assert machine.parse(recorded("machine") + "NVIDIA A100-SXM4-40GB\n")["gpu"] == "NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("family", "facts", "name"),
    [
        ("x86_64", {"vendor_id": "AuthenticAMD", "flags": ""}, "x86_64"),
        ("aarch64", {"CPU implementer": "0x41", "Features": "fp asimd"}, "aarch64"),
        ("ppc64le", {"cpu": "POWER9"}, "ppc64le"),
        ("alpha", {}, "alpha"),
    ],
)
def test_another_machine_than_ours_can_be_named(family: str, facts: dict[str, str], name: str) -> None:
    assert machine.microarchitecture(family, facts) == name


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="no lscpu here")
def test_this_machine_is_described() -> None:
    done = subprocess.run(["bash", "-c", machine.script()], capture_output=True, text=True, check=True)
    assert machine.parse(done.stdout)["os"] == "Linux"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_script_is_one_that_bash_can_read(program: Program) -> None:
    paths = StoragePaths.under("/it's $HOME")
    for settings in (BenchmarkSettings(iperf3_server="speed.example.org"), elsewhere(program)):
        request = measuring.request(program, Site(TWO_NODES, paths), settings)
        if request is not None:
            subprocess.run(["bash", "-n"], input=request.script, text=True, check=True)


def elsewhere(program: Program) -> BenchmarkSettings:
    """Settings that take other ways through the scripts than the defaults."""
    return BenchmarkSettings(
        single_node=program != "network",
        ucx=True,
        osu="image:docker://osu/osu:7",
        ior="path:/opt/it's ior",
        speedtest="true",
    )
