"""Samples of what a job used: bounded in number, with all peaks, and never absurd."""

from __future__ import annotations

from itertools import pairwise

from deepgrid.billing.use_samples import MOST_SAMPLES, UseHistory, UseSample, with_sample


def sample(run_s: int, cpu_s: int | None = None, memory_mb: int | None = None) -> UseSample:
    return UseSample(cpu_s, memory_mb, run_s=run_s)


def kept(*samples: UseSample) -> tuple[UseSample, ...]:
    found: tuple[UseSample, ...] = ()
    for one in samples:
        found = with_sample(found, one)
    return found


def test_many_samples_become_few_that_cover_the_whole_run() -> None:
    found = kept(*(sample(n, cpu_s=n, memory_mb=7 if n != 5000 else 900) for n in range(1, 10_001)))
    assert len(found) == MOST_SAMPLES
    assert found[-1].run_s == 10_000
    gaps = [after.run_s - before.run_s for before, after in pairwise((UseSample(), *found))]
    assert max(gaps[:-1]) < 6 * 10_000 / MOST_SAMPLES
    history = UseHistory(1, 1000, 0, found)
    assert history.so_far.memory_mb == 900, "a peak survives"
    assert all(rate == 1.0 for rate in history.cpus)


def test_a_sample_from_the_past_changes_nothing() -> None:
    first = kept(sample(60, cpu_s=10))
    assert with_sample(first, sample(60, cpu_s=99)) == with_sample(first, sample(1, cpu_s=99)) == first


def test_what_was_used_so_far() -> None:
    history = UseHistory(2, 800, 0, kept(sample(60, 60, 500), sample(120, 120, 200)))
    assert history.so_far.words == "asked 2 CPUs, used 1.0; asked 800 MB, used 500 MB"
    assert UseHistory(2, 800, 0, ()).so_far.words == ""


def test_a_gap_is_not_known_and_a_total_that_falls_is_no_use() -> None:
    """A supervisor that restarts forgets the steps that ended, so a total may fall."""
    history = UseHistory(2, 800, 0, (sample(10, 10), sample(20), sample(30, 15), sample(40, 5)))
    assert history.cpus == [1.0, None, None, 0.0]
