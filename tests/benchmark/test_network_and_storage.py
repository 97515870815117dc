"""Parsers of OSU's benchmarks, our ping-pong, IOR, fio, iperf3 and speedtest, and what they do with garbage.

The logs in `data/` are recorded, or have the form that the programs' documentation shows.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from deepgrid.benchmark import internet, measuring, network, storage
from deepgrid.benchmark.figures import MOST_SAMPLES, Samples
from deepgrid.benchmark.labels import is_measured
from deepgrid.benchmark.settings import PROGRAMS, BenchmarkSettings
from deepgrid.errors import SlurmError
from deepgrid.sbatch import StoragePaths

DATA = Path(__file__).parent / "data"
USUAL = BenchmarkSettings()


def recorded(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def values(samples: dict[str, Samples]) -> dict[str, float]:
    return {key: round(one.value, 2) for key, one in samples.items()}


def labels(outcome: measuring.Outcome) -> dict[str, str]:
    return {label.key: label.value for label in outcome.labels}


def test_the_ping_pong_has_figures_of_large_messages_and_of_small_ones() -> None:
    found, which = network.parse(recorded("network"))
    assert which == "mpi4py"
    assert values(found) == {
        "network.p2p.latency.us": 99577.49,
        "network.p2p.latency.1b.us": 12.06,
        "network.p2p.bw.mbps": 56.61,
        "network.all-to-all.latency.us": 54527.32,
        "network.all-to-all.latency.8b.us": 17.02,
    }


def test_logs_of_osus_benchmarks_are_read_at_their_largest_message_and_the_label_names_them() -> None:
    found, which = network.parse(recorded("osu"))
    assert which == "osu"
    assert values(found) == {
        "network.p2p.latency.us": 362.1,
        "network.p2p.latency.1b.us": 1.55,
        "network.p2p.bw.mbps": 23141.1,
        "network.all-to-all.latency.us": 1884.39,
        "network.all-to-all.latency.8b.us": 2.19,
    }
    assert network.versions(recorded("osu")) == {"osu": "7.4"}
    for wrong in ("nan", "0.00", "-3", "1e99"):
        with pytest.raises(SlurmError, match="bw.mbps"):
            network.parse(recorded("osu").replace("23141.10", wrong))


def test_each_run_of_osu_is_a_sample() -> None:
    faster = recorded("osu").replace("362.10", "360.00").replace("23141.10", "23000.00")
    found, _ = network.parse(recorded("osu") + faster + recorded("osu"))
    assert found["network.p2p.latency.us"].values == (362.1, 360.0, 362.1)
    assert found["network.p2p.bw.mbps"].values == (23141.1, 23000.0, 23141.1)


def test_incomplete_network_output_is_refused() -> None:
    with pytest.raises(SlurmError, match="all-to-all"):
        network.parse("\n".join(recorded("network").splitlines()[:3]))


def test_speedtest_gives_the_connection_to_the_internet() -> None:
    outcome = measuring.read("internet", recorded("speedtest") * 3, USUAL)
    assert labels(outcome) == {
        "network.download.bw.mbps": "1135.91",
        "network.upload.bw.mbps": "1167.13",
        "network.internet.benchmark": "speedtest",
    }
    assert len(outcome.evidence.samples["network.upload.bw.mbps"].values) == 3


def test_the_report_of_speedtest_cli_is_in_bits() -> None:
    report = '{"download": 800000000.0, "upload": 80000000.0, "ping": 2.1, "server": {"host": "speed.example.org"}}\n'
    assert values(internet.parse(report)[0]) == {"network.download.bw.mbps": 100, "network.upload.bw.mbps": 10}


def test_iperf3_gives_both_directions_as_the_receiver_saw_them() -> None:
    found, which = internet.parse(recorded("iperf3"))
    assert which == "iperf3"
    assert values(found) == {"network.upload.bw.mbps": 116.71, "network.download.bw.mbps": 118.07}
    assert internet.versions(recorded("iperf3")) == {"iperf3": "3.12"}
    with pytest.raises(SlurmError, match="no report of an upload and a download"):
        internet.parse('{"start": {}, "error": "unable to connect to server: Connection refused"}\n')


def test_the_csv_of_ior_gives_rates_of_large_transfers_and_operations_of_small_ones() -> None:
    figures, problems, which = storage.parse(recorded("ior"))
    assert which == "ior"
    assert values(figures) == {
        "storage.scratch.write.bw.mibps": 50.0,
        "storage.scratch.read.bw.mibps": 1248.0,
        "storage.scratch.write.iops": 1001.0,
        "storage.scratch.read.iops": 2002.0,
    }
    assert figures["storage.scratch.write.bw.mibps"].values == (49.836, 50.164, 50.0)
    assert problems == {"disk-tmp": "IOR is not installed where the settings say."}
    assert storage.parse(recorded("ior").replace("read,", "erase,"))[0] == {}


def test_a_volume_has_no_operations_if_ior_refused_the_run_for_them() -> None:
    refused = "ERROR: random offset not available with collective MPIIO, (ior.c:1500)"
    streams = recorded("ior").split("remove,")[0]
    figures, problems, _ = storage.parse(f"{streams}{refused}\n")
    assert (figures, problems) == ({}, {"scratch": refused})


@pytest.mark.parametrize(("volume", "api"), [("scratch", "-a MPIIO"), ("disk-tmp", "-a POSIX -F")])
def test_random_offsets_go_without_the_options_that_ior_refuses_with_them(volume: str, api: str) -> None:
    script = storage.script(2, StoragePaths.under("/jobs"), BenchmarkSettings(ior="path:/opt/ior"))
    function = re.search(r"^measure_by_ior\(\) \{\n.*?^\}\n", script, re.MULTILINE | re.DOTALL)
    assert function
    stand_ins = 'find_program() { program=(ior); }\nmpirun() { echo "$*"; }\n'
    done = subprocess.run(
        ["bash", "-c", f"{stand_ins}{function[0]}measure_by_ior {volume}"], capture_output=True, text=True, check=True
    )
    streams, operations = done.stdout.splitlines()
    assert api in streams
    assert api in operations
    assert ("-c -C" in streams) is (volume == "scratch")
    assert (" -z " in operations, " -c " in operations, " -C " in operations) == (True, False, False)


def test_a_volume_that_cannot_be_used_costs_its_own_figures_only() -> None:
    figures, problems, which = storage.parse(recorded("storage"))
    assert which == "fio"
    assert values(figures) == {
        "storage.scratch.write.bw.mibps": 2577.08,
        "storage.scratch.read.bw.mibps": 1243.03,
        "storage.scratch.write.iops": 12992.13,
        "storage.scratch.read.iops": 15593.63,
    }
    assert list(problems) == ["shared-tmp"]
    assert "No such file or directory" in problems["shared-tmp"]
    assert storage.versions(recorded("storage")) == {"fio": "3.33"}


def test_a_failed_run_of_fio_is_no_measurement() -> None:
    figures, problems, _ = storage.parse(recorded("storage").replace('"error" : 0', '"error" : 28'))
    assert (figures, list(problems)) == ({}, ["scratch", "shared-tmp"])


def test_a_noisy_figure_says_so_in_a_label() -> None:
    steady = recorded("network") + recorded("network").replace("56.608", "54.0")
    assert "network.remark" not in labels(measuring.read("network", steady, USUAL))
    outcome = measuring.read("network", recorded("network") + recorded("network").replace("56.608", "22.0"), USUAL)
    assert labels(outcome)["network.remark"] == "noisy"
    assert outcome.evidence.noisy == ("network.p2p.bw.mbps",)
    spread = outcome.evidence.samples["network.p2p.bw.mbps"].spread_percent
    assert spread == pytest.approx(88.05, abs=0.1)


def test_a_measurement_without_all_nodes_says_so_in_a_label() -> None:
    outcome = measuring.read("hpl", recorded("hpl"), USUAL, missing=1)
    assert labels(outcome)["compute.remark"] == "partial"
    assert outcome.evidence.parameters["nodes that did not take part"] == "1"


GARBAGE = (
    "",
    "\x1b[2J\x00" * 1000,
    "{" * 100_000,
    '{"download":' * 5000,
    '{"download":{"bandwidth":1' + "0" * 4000 + '},"upload":{"bandwidth":NaN}}\n',
    "network.p2p.bw.mbps nan\n" * 10_000,
    "# OSU " * 10_000,
    "access,bw(MiB/s),\n" + "write," * 10_000,
    "deepgrid-volume ../../etc\n" * 10_000,
    "WR11C2R4 " + "9 " * 50_000,
    "deepgrid-node n1\n" * 10_000,
    "== system\n== architecture\n" * 1000,
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("number", range(len(GARBAGE)))
@pytest.mark.timeout(20)
def test_garbage_is_refused_with_a_sentence(program: str, number: int) -> None:
    with pytest.raises(SlurmError):
        measuring.read(program, GARBAGE[number], USUAL)  # type: ignore[arg-type]


def test_output_of_a_node_makes_only_measured_labels_of_bounded_number() -> None:
    """A customer's job may run on the node too, and write into what is measured."""
    forged = "name cheap\nnetwork.price.cpu 0\nnetwork.p2p.bw.mbps 1\n" * 500
    outcome = measuring.read("network", recorded("network") + forged, USUAL)
    assert all(is_measured(label.key) for label in outcome.labels)
    assert len(outcome.evidence.samples["network.p2p.bw.mbps"].values) == MOST_SAMPLES
    volume = recorded("storage").replace("deepgrid-volume scratch", "deepgrid-volume scratch.price")
    with pytest.raises(SlurmError):
        measuring.read("storage", volume, USUAL)
