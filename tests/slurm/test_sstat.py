"""What running jobs use, by `sstat`: recorded on three versions of Slurm, and rows of sites with GPUs."""

from __future__ import annotations

import pytest

from deepgrid.slurm.commands.step_uses import SacctUse, Sstat
from deepgrid.slurm.commands.tres import StepUse, step_use
from tests.slurm.record import RECORDED

MB = 1024 * 1024
# The form in which sites publish it: Slurm 23.11 with AutoDetect=nvml. The step `extern` has no work.
NVML = (
    "cpu=00:56:24,energy=0,fs/disk=350130624578,gres/gpumem=40777023488,gres/gpuutil=100,mem=10621726720,pages=3465,"
    "vmem=10439041024"
)
IDLE_GPU = "cpu=00:02:30,energy=0,fs/disk=5273,gres/gpumem=0,gres/gpuutil=0,mem=262144,pages=0,vmem=0"


@pytest.mark.parametrize("version", sorted(folder.name for folder in RECORDED.iterdir()))
def test_each_version_prints_the_running_steps(version: str) -> None:
    ((_, steps),) = Sstat.parse((RECORDED / version / "sstat.txt").read_text()).items()
    assert set(steps) == {"batch", "0"}, "the held job has no row"
    assert steps["0"].cpu_ms >= 5000
    assert 100 * MB < (steps["0"].memory or 0) < 150 * MB
    assert steps["0"].read is not None
    assert steps["0"].written is not None
    assert steps["0"].gpu_percent is None
    assert 0 < (steps["batch"].memory or 0) < 50 * MB


def test_one_command_asks_for_many_jobs_in_bytes() -> None:
    argv = Sstat([7, 8]).argv()
    assert argv[:4] == ["env", "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s"]
    assert argv[4:] == [
        "sstat",
        "-a",
        "-n",
        "-P",
        "--noconvert",
        "-j",
        "7,8",
        "-o",
        "JobID,TRESUsageInTot,TRESUsageOutTot",
    ]


def test_gpus_are_known_where_slurm_reads_them() -> None:
    assert step_use(NVML, "energy=0,fs/disk=1") == StepUse(
        cpu_ms=3_384_000, memory=10621726720, read=350130624578, written=1, gpu_percent=100, gpu_memory=40777023488
    )
    steps = Sstat.parse(f"7.0|{NVML}|\n7.1|{IDLE_GPU}|\n7.extern|{NVML}|\n")[7]
    assert {name: step.gpu_percent for name, step in steps.items()} == {"0": 100, "1": None}


@pytest.mark.parametrize("endless", ["18446744073709551615", "18446744073709551614", "16E", "-1", "nan", "1e9", ""])
def test_a_gpu_that_cannot_be_measured_is_not_known(endless: str) -> None:
    """Slurm prints 0, or its word for endless, for GPUs whose driver does not say."""
    use = step_use(f"cpu=00:00:01,gres/gpumem={endless},gres/gpuutil={endless},mem={endless}", "")
    assert use == StepUse(1000, None, None, None, None, None)


def test_gpus_of_steps_at_the_same_time_add_up_at_the_end() -> None:
    steps = "".join(f"7.{number}|10|70|00:01.000|{NVML}|fs/disk=1\n" for number in range(2))
    found = SacctUse.parse(f"7|10|70|00:02.000||\n{steps}")[7, 10]
    assert (found.gpu_percent, found.gpu_memory_mb) == (200, 2 * 38888)


def test_other_text_is_no_step() -> None:
    text = "sstat: error: couldn't get steps for job 9\n7|mem=1|\n7.0;rm|mem=1|\n٧.0|mem=1|\n7.0\n8.batch||\n"
    assert Sstat.parse(text) == {8: {"batch": StepUse(0, None, None, None, None, None)}}
