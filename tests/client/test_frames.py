"""Clusters, offers, jobs of a map and places of a sweep as tables of pandas, with exact amounts."""

from __future__ import annotations

from decimal import Decimal

from deepgrid.client import AsyncGrid
from deepgrid.client.display.data_frames import frame_of
from deepgrid.client.repeat.sweep_groups import SweepGroup, SweepRow
from deepgrid.lifecycle.states import JobStatus
from tests.cli.live import EXAMPLE
from tests.client.stage import Stage
from tests.waiting import until


async def test_clusters_offers_and_jobs_are_tables(grid: AsyncGrid, stage: Stage) -> None:
    clusters = (await grid.clusters()).to_frame().set_index("address")
    own = clusters.loc[stage.provider.address]
    assert (own["name"], own["cpus"], own["cpu_price"]) == ("alpha", 8, Decimal("0.5"))
    offers = (await grid.offers(EXAMPLE, credits=100)).to_frame().set_index("address")
    assert offers.loc[stage.provider.address]["rate"] == Decimal("0.628")
    jobs = await grid.map(EXAMPLE, [{"GREETING": "a"}, {"GREETING": "b"}], credits=100, name="both")
    await until(lambda: len(jobs.ids) == 2)
    table = jobs.to_frame()
    assert list(table["GREETING"]) == ["a", "b"]
    assert (list(table["id"]), set(table["locked"])) == (jobs.ids, {Decimal(100)})


def test_places_of_a_sweep_have_their_parameters_and_packed_ones_are_joined() -> None:
    rows = [
        SweepRow(at, sets, at + 6, JobStatus.FINISHED, "", "alpha", Decimal(2), 1)
        for at, sets in ((1, ({"RATE": "0.1", "at": "x"},)), (2, ({"RATE": "0.2"}, {"RATE": "0.3"})))
    ]
    table = SweepGroup("a" * 16, "wing", 2, tuple(rows)).to_frame()
    assert list(table["RATE"]) == ["0.1", "0.2, 0.3"]
    assert list(table["at"]) == [1, 2]  # a parameter takes no column of the sweep
    assert frame_of([], ["id"]).empty
