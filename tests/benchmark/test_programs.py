"""The programs' scripts and inputs, and the parsers on recorded real outputs (`data/`)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deepgrid.benchmark import hpl, machine, measuring, network, storage
from deepgrid.benchmark.settings import PROGRAMS, BenchmarkSettings, Program
from deepgrid.errors import ConfigurationError, SlurmError
from deepgrid.lifecycle.job import Hardware, Label
from deepgrid.sbatch import StoragePaths

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


def test_hpl_reads_its_input_by_lines() -> None:
    lines = hpl.problem_for(TWO_NODES, BenchmarkSettings(hpl_seconds=ALL_TIME)).input_file().splitlines()
    assert len(lines) == 31
    assert [lines[at].split()[0] for at in (5, 7, 10, 11)] == ["31488", "192", "4", "4"]


def test_hpls_best_rate_counts() -> None:
    assert hpl.parse(recorded("hpl")) == (1.944, "hpl")
    faster = "WC10R8C4     9000   192     4     4    1.00   1.234e+02\n"
    assert hpl.parse(recorded("hpl") + faster) == (123.4, "hpl")


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
    assert hpl.parse(MXP) == (96510.0, "hpl-mxp")
    assert hpl.parse(MXP.replace("HPL_AI  ", "HPL-MxP ")) == (96510.0, "hpl-mxp")
    labels = measuring.read("hpl", MXP).labels
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


def test_the_network_has_the_figures_of_large_messages_and_small_ones() -> None:
    assert network.parse(recorded("network")) == {
        "network.p2p.latency.us": pytest.approx(99577.49, abs=0.01),
        "network.p2p.latency.1b.us": pytest.approx(12.06, abs=0.01),
        "network.p2p.bw.mbps": pytest.approx(56.61, abs=0.01),
        "network.all-to-all.latency.us": pytest.approx(54527.32, abs=0.01),
        "network.all-to-all.latency.8b.us": pytest.approx(17.02, abs=0.01),
    }


OSU = """\
# OSU MPI Latency Test v7.0
# Size          Latency (us)
1                       1.55
4194304               362.10
# OSU MPI Bi-Directional Bandwidth Test v7.0
# Size      Bandwidth (MB/s)
1                       3.17
4194304             23141.10
# OSU MPI All-to-All Personalized Exchange Latency Test v7.0
# Size       Avg Latency(us)
1                       2.10
1048576              1884.39
"""


def test_logs_of_osus_benchmarks_are_read_at_their_largest_message() -> None:
    assert network.parse(OSU) == {
        "network.p2p.latency.us": 362.1, "network.p2p.bw.mbps": 23141.1, "network.all-to-all.latency.us": 1884.39,
    }  # fmt: skip
    with pytest.raises(SlurmError, match="bw.mbps"):
        network.parse(OSU.replace("23141.10", "nan"))
    with pytest.raises(SlurmError, match="bw.mbps"):
        network.parse(OSU.replace("23141.10", "0.00"))


def test_a_report_of_ooklas_client_gives_the_ways_out_of_the_cluster() -> None:
    report = (
        '{"type":"result","ping":{"latency":2.1},"download":{"bandwidth":1135906059},'
        '"upload":{"bandwidth":1167130833}}\n'
    )
    labels = {label.key: label.value for label in measuring.read("network", OSU + report).labels}
    assert (labels["network.download.bw.mbps"], labels["network.upload.bw.mbps"]) == ("1135.91", "1167.13")
    assert network.parse_speedtest('{"type":"log"}') == {}
    settings = BenchmarkSettings(speedtest="speedtest --format=json")
    assert network.script(2, settings).endswith("speedtest --format=json")
    assert "speedtest" not in network.script(2, USUAL)


IOR = """\
deepgrid-volume scratch
access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter
write,49.8360,49.8361,0.8696,1048576.0000,1024.0000,1.5176,986.2731,247.6521,986.2759,48,0
write,50.1640,50.1639,0.8696,1048576.0000,1024.0000,1.5176,986.2731,247.6521,986.2759,48,1
read,1243.0,1244.0,0.8696,1048576.0000,1024.0000,1.5176,986.2731,247.6521,986.2759,48,0
remove,-,-,-,-,-,-,-,-,0.9,48,0
"""


def test_the_csv_of_ior_is_read_as_the_mean_of_its_repetitions() -> None:
    figures, problems = storage.parse(IOR)
    assert {key: round(value, 4) for key, value in figures.items()} == {
        "storage.scratch.write.bw.mibps": 50.0, "storage.scratch.write.iops": 50.0,
        "storage.scratch.read.bw.mibps": 1243.0, "storage.scratch.read.iops": 1244.0,
    }  # fmt: skip
    assert problems == {}
    assert storage.parse(IOR.replace("read,", "erase,"))[0] == {}


def test_incomplete_network_output_is_refused() -> None:
    with pytest.raises(SlurmError, match="all-to-all"):
        network.parse("\n".join(recorded("network").splitlines()[:3]))


def test_one_node_has_no_network_to_measure() -> None:
    assert measuring.request("network", ONE_NODE, StoragePaths(), USUAL) is None


def test_a_volume_that_cannot_be_used_costs_its_own_figures_only() -> None:
    figures, problems = storage.parse(recorded("storage"))
    assert figures == {
        "storage.scratch.write.bw.mibps": pytest.approx(2577.08, abs=0.01),
        "storage.scratch.read.bw.mibps": pytest.approx(1243.03, abs=0.01),
        "storage.scratch.write.iops": pytest.approx(12992.13, abs=0.01),
        "storage.scratch.read.iops": pytest.approx(15593.63, abs=0.01),
    }
    assert list(problems) == ["shared-tmp"]
    assert "No such file or directory" in problems["shared-tmp"]


def test_a_failed_run_of_fio_is_no_measurement() -> None:
    figures, problems = storage.parse(recorded("storage").replace('"error" : 0', '"error" : 28'))
    assert (figures, list(problems)) == ({}, ["scratch", "shared-tmp"])


def test_the_machine_is_named_as_customers_ask_for_it() -> None:
    assert measuring.read("machine", recorded("machine")).labels == (
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
    request = measuring.request(program, TWO_NODES, paths, USUAL)
    assert request is not None
    subprocess.run(["bash", "-n"], input=request.script, text=True, check=True)


@pytest.mark.parametrize("bad", [{"volumes": ("tape",)}, {"memory_share": 0.0}, {"memory_share": 1.5}])
def test_meaningless_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        BenchmarkSettings(**bad)  # type: ignore[arg-type]
