"""What the settings of a benchmark make of the options of sbatch and of the commands in the script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from blocks import Benchmarks
from deepgrid.benchmark import measuring
from deepgrid.benchmark.measuring import Request, Site
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Hardware
from deepgrid.sbatch import StoragePaths

NODES = Hardware((0, 0, 0), (4, 4, 4), (8000, 8000, 8000))
ONE_NODE = Hardware((0,), (3,), (4000,))
SITE = Site(NODES, StoragePaths())


def asked(program: Program, site: Site = SITE, **settings: Any) -> Request:
    """Return the job of a program with these fields of the block."""
    found = measuring.request(program, site, Benchmarks(**settings).settings())
    assert found is not None
    return found


@pytest.mark.parametrize("program", ["hpl", "network"])
def test_without_ucx_messages_travel_by_shared_memory_and_tcp(program: Program) -> None:
    script = asked(program).script
    assert "--mca pml ob1 --mca btl self,vader,tcp" in script
    assert "UCX" not in script


@pytest.mark.parametrize("program", ["hpl", "network"])
def test_ucx_is_bound_to_interfaces_and_transports(program: Program) -> None:
    script = asked(program, ucx=True, affinities=["mlx5_0:1", "mlx5_1:1"], transport="rc,self,sm").script
    assert "mpirun --mca pml ucx -x UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 -x UCX_TLS=rc,self,sm " in script
    assert "ob1" not in script


def test_ucx_chooses_what_is_left_open() -> None:
    script = asked("network", ucx=True).script
    assert "mpirun --mca pml ucx -n 2 " in script
    assert "UCX_" not in script


def test_other_options_of_mpirun_stay_beside_ucx() -> None:
    assert "mpirun --mca pml ucx --bind-to none -n" in asked("hpl", ucx=True, mpi_options="--bind-to none").script


def test_a_single_node_is_measured_alone() -> None:
    """HPL per node, at the same time, on all nodes; nothing that needs a fast network."""
    request = asked("hpl", single_node=True)
    assert request.options[:3] == ["--nodes=3", "--ntasks=12", "--ntasks-per-node=4"]
    assert "-n 4 --host $node:4 hpcc" in request.script
    assert request.parameters["P x Q"] == "2 x 2"
    assert request.parameters["nodes"] == "3, each alone"
    assert measuring.request("network", SITE, Benchmarks(single_node=True).settings()) is None
    assert asked("storage", single_node=True).options[0] == "--nodes=1"


def test_without_it_the_nodes_solve_one_problem() -> None:
    request = asked("hpl")
    assert request.options[:3] == ["--nodes=3", "--ntasks=12", "--ntasks-per-node=4"]
    assert "-n 12 hpcc" in request.script
    assert request.parameters["P x Q"] == "4 x 3"
    assert asked("network").options[0] == "--nodes=3"
    assert asked("storage").options[0] == "--nodes=3"


def test_one_node_has_no_network_to_measure() -> None:
    assert measuring.request("network", Site(ONE_NODE, StoragePaths()), BenchmarkSettings()) is None


def test_nothing_outside_the_cluster_is_contacted_without_a_setting() -> None:
    assert measuring.request("internet", SITE, BenchmarkSettings()) is None
    assert "iperf3 -J -t 5 --connect-timeout 10000 -c speed.example.org -p 5202 -R" in (
        asked("internet", iperf3_server="speed.example.org", iperf3_port=5202).script
    )
    assert "speedtest --format=json" in asked("internet", speedtest="speedtest --format=json").script


def test_gpus_without_ucx_do_not_use_infiniband() -> None:
    gpus = Site(Hardware((2, 2), (16, 16), (64000, 64000)), StoragePaths())
    assert "NCCL_IB_DISABLE=1" in asked("hpl", gpus, hpl_mxp="hpl.sh").script
    assert "NCCL_IB_DISABLE" not in asked("hpl", gpus, hpl_mxp="hpl.sh", ucx=True).script


@pytest.mark.parametrize(
    "bad",
    [
        {"volumes": ("tape",)},
        {"memory_share": 0.0},
        {"memory_share": 1.5},
        {"samples": 0},
        {"affinities": ("mlx5_0:1",)},
        {"transport": "rc"},
        {"ucx": True, "affinities": ("mlx5_0:1; rm -rf /",)},
        {"ucx": True, "affinities": ("-x",)},
        {"ucx": True, "transport": "rc $(id)"},
        {"ucx": True, "mpi_options": "--mca pml ob1"},
        {"osu": "osu"},
        {"osu": "module:--help; id"},
        {"ior": "image:docker://x$(id)"},
        {"ior": "path:relative"},
        {"iperf3_server": "-s"},
        {"iperf3_server": "a b"},
    ],
)
def test_meaningless_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        BenchmarkSettings(**bad)


def program_in(folder: Path, name: str, body: str) -> Path:
    """Make an executable that runs these shell lines."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with an `mpirun` that records its arguments, and the usual programs of the machine."""
    calls = tmp_path / "calls"
    program_in(
        tmp_path / "bin", "mpirun", f'[ "$1" = --version ] && echo "mpirun (Open MPI) 9.9" || echo "$@" >> {calls}'
    )
    return tmp_path


def run(tools: Path, request: Request) -> str:
    """Run the script with these tools in PATH. Returns its output, and below that each call of mpirun."""
    env = {**os.environ, "PATH": f"{tools / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(tools)}
    done = subprocess.run(
        ["bash"], input=request.script, cwd=tools, env=env, capture_output=True, text=True, check=False
    )
    calls = tools / "calls"
    return done.stdout + done.stderr + (calls.read_text() if calls.exists() else "")


def test_osu_is_used_where_it_is_installed_else_the_ping_pong(tools: Path) -> None:
    said = run(tools, asked("network", samples=3))
    assert said.count("-n 3 --map-by ppr:1:node /usr/bin/python3 pingpong.py") == 3
    assert "osu" not in said
    for name in ("osu_latency", "osu_bibw", "osu_alltoall"):
        program_in(tools / "bin", name, "true")
    (tools / "calls").unlink()
    said = run(tools, asked("network", samples=3))
    assert said.count(f"-n 2 --map-by ppr:1:node {tools}/bin/osu_latency") == 3
    assert said.count(f"-n 2 --map-by ppr:1:node {tools}/bin/osu_bibw") == 3
    assert said.count(f"-n 3 --map-by ppr:1:node {tools}/bin/osu_alltoall") == 3
    assert "pingpong.py" not in said


def test_osu_comes_from_a_folder_at_any_depth(tools: Path) -> None:
    root = tools / "it's osu"
    program_in(root / "mpi" / "pt2pt" / "standard", "osu_latency", "true")
    program_in(root / "mpi" / "pt2pt" / "standard", "osu_bibw", "true")
    program_in(root / "mpi" / "collective" / "blocking", "osu_alltoall", "true")
    said = run(tools, asked("network", osu=f"path:{root}"))
    assert f"{root}/mpi/collective/blocking/osu_alltoall" in said


def test_osu_comes_from_an_image_or_a_module(tools: Path) -> None:
    program_in(tools / "bin", "apptainer", "true")
    said = run(tools, asked("network", osu="image:docker://example.org/osu:7.4"))
    assert "-n 2 --map-by ppr:1:node apptainer exec docker://example.org/osu:7.4 osu_latency" in said
    request = asked("network", osu="module:osu-micro-benchmarks/7.4")
    assert request.script.startswith("#!/bin/bash -l\n")
    assert "module load osu-micro-benchmarks/7.4 && " in request.script


def test_a_configured_program_that_is_missing_is_told(tools: Path) -> None:
    assert "OSU is not installed where the settings say." in run(tools, asked("network", osu=f"path:{tools}"))
    site = Site(NODES, StoragePaths.under(str(tools)))
    for folder in site.paths.roots:
        Path(folder).mkdir(parents=True, exist_ok=True)
    said = run(tools, asked("storage", site, ior=f"path:{tools}", volumes=["scratch"]))
    assert "deepgrid-volume scratch\nIOR is not installed where the settings say." in said


def test_ior_shares_a_file_on_shared_volumes_and_measures_the_disk_of_one_node(tools: Path) -> None:
    program_in(tools / "bin", "ior", "true")
    site = Site(NODES, StoragePaths.under(str(tools)))
    for folder in site.paths.roots:
        Path(folder).mkdir(parents=True, exist_ok=True)
    request = asked("storage", site, volumes=["scratch", "disk-tmp"], ior_ranks_per_node=2, fio_size_mb=64)
    assert request.options == ["--nodes=3", "--ntasks=6", "--ntasks-per-node=2"]
    shared, small, disk, _ = [line for line in run(tools, request).splitlines() if "ppr:2:node" in line]
    assert f"-n 6 {tools}/bin/ior -a MPIIO -c -C -i 3 -w -r -e -g -O summaryFormat=CSV -o" in shared
    assert shared.endswith("-t 2m -b 32m")
    assert "-z" in small and small.endswith("-t 4k -b 2m")
    assert f"-n 2 {tools}/bin/ior -a POSIX -F -i 3" in disk
    assert not list(tools.glob("**/deepgrid-benchmark.*")), "the files of a measurement are removed"
