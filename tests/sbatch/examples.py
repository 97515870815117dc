"""The example workflows, and the output of those about networks and containers."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples"


NETWORK_EXAMPLES = {
    "network-own": ["hello"],
    "network-dns": ["nameserver 192.0.2.53", "nameserver 192.0.2.54"],
    "network-wireguard": ["wg0 10.9.0.2/24"],
    "network-virtual": ["greetings from 10.7.0.2"],
    "network-bore": ["that was two seconds"],
}


GREETING = "hello from the image"


CONTAINER_EXAMPLES: dict[str, list[str]] = {
    "container": ["storage is /deepsquare", "no files of the node", "made in a container", "also in later steps"],
    "container-credentials": [GREETING, "no password here"],
    "container-entrypoint": [
        "entry point in /srv/app", "<by default>", "entry point in /tmp", "<Ada>", "<Mary Jane>", "<$HOME>",
    ],
    "container-file": [
        "Input contains:", "./image.sif", "deepgrid: image.sif is not an archive, so it stays as it is", GREETING,
    ],
    "container-folder": ["/srv/app", "the image", "/deepsquare/work", "the step", "0:0"],
    "container-home": ["not there", "from home"],
    "container-hosted": [GREETING],
    "container-mpi": [f"rank {rank} of 4: the sum is 6" for rank in range(4)],
    "container-read-only": ["written", "refused", "written to the output"],
}  # fmt: skip


CONTAINER_EXAMPLES_WITH_STAND_INS = {"container-enroot"}
