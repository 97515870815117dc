"""What runs used, by accounting's records of their steps. The rows here were recorded on Slurm 22.05."""

from __future__ import annotations

import pytest

from deepgrid.billing.resource_use import Measured
from deepgrid.slurm.commands.step_uses import SacctUse

MB = 1024 * 1024
START, END = 1795899657, 1795899672


def row(name: str, cpu: str, mem: int | None = None, *, start: int = START, end: int | str = END) -> str:
    """Return a row; `mem` is None where no sample was taken."""
    sampled = "energy=0" if mem is None else f"cpu=00:00:01,energy=0,fs/disk={3 * MB},mem={mem},pages=0"
    written = "energy=0" if mem is None else f"energy=0,fs/disk={2 * MB}"
    return f"{name}|{start}|{end}|{cpu}|{sampled}|{written}\n"


def used(*rows: str) -> Measured | None:
    job = f"7|{START}|{END}|00:02.824||\n"
    return SacctUse.parse("".join([job, *rows])).get((7, START))


def test_steps_at_the_same_time_add_up_and_steps_one_after_another_do_not() -> None:
    batch = row("7.batch", "00:00.089", 8 * MB)
    first = row("7.0", "01:00.500", 60 * MB, end=START + 7)
    second = row("7.1", "1-00:00:01", 50 * MB, start=START + 7)
    assert used(batch, first, second) == Measured(cpu_s=86462, memory_mb=68, read_mb=9, written_mb=6)


def test_a_step_that_was_killed_counts_with_its_samples() -> None:
    assert used(row("7.batch", "00:00.000", 8 * MB)) == Measured(1, 8, 3, 2)


@pytest.mark.parametrize("lost", [None, 0])
def test_memory_is_not_known_if_a_step_has_no_sample_of_it(lost: int | None) -> None:
    batch = row("7.batch", "00:05.000", 8 * MB)
    assert used(batch, row("7.0", "00:02.000", lost)) == Measured(cpu_s=7)
    assert used(batch, row("7.0", "00:02.000", lost, end=START + 1)) == Measured(7, 8, 3, 2), "too short for a sample"


def test_nothing_is_known_where_slurm_gathers_nothing() -> None:
    """With JobAcctGatherType=none, all times are 0 and no resource is listed."""
    assert used(f"7.batch|{START}|{END}|00:00:00||\n") == Measured()


def test_a_run_whose_end_is_not_on_record_is_not_read() -> None:
    assert used(row("7.batch", "00:02.000", end="Unknown")) is None
    assert used() is None
    assert SacctUse.parse(f"7|{START}|Unknown|00:00:00||\n{row('7.batch', '00:01.000')}") == {}


def test_a_reused_id_is_another_run() -> None:
    later = f"7|{END}|{END + 20}|00:09.000||\n" + row("7.batch", "00:09.000", 9 * MB, start=END, end=END + 20)
    found = SacctUse.parse(f"7|{START}|{END}|00:02.000||\n{row('7.batch', '00:02.000', 8 * MB)}{later}")
    assert {run: one.cpu_s for run, one in found.items()} == {(7, START): 2, (7, END): 9}


def test_unknown_text_is_no_figure_and_no_error() -> None:
    text = "sacct: warning\n|||||\n7_1.batch|1|2|x|mem=1|\n9.batch|1|2|00:01.000|mem=1G|\n"
    assert SacctUse.parse(text) == {}
    assert used(f"7.batch|{START}|{END}|99:99:99:99|mem=-5,fs/disk=x|\n") == Measured()


def test_many_steps_are_read_in_one_pass() -> None:
    steps = [row(f"7.{number}", "00:00.001", MB, end=START + 1) for number in range(20_000)]
    assert used(row("7.batch", "00:01.000", MB), *steps) is not None
