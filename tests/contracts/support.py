"""The steps of a job and of a provider, by a client that knows only the observed surface."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

from tests.contracts.scene import CREDIT, Scene

HARDWARE = (2, [4, 4], [16, 16], [64_000, 64_000])
PRICES = (8 * CREDIT, CREDIT, CREDIT // 10_000)
LABELS = [("os", "linux"), ("gpu", "none")]
# 14.6 credits per minute
DEFINITION = (1, 1000, 2, 3, "ab" * 23, 4, [("os", "linux")], [(("zone", "west"), b"==")])
NAME = b"a job".ljust(32, b"\0")
RATE = 146 * CREDIT // 10
PENDING, META_SCHEDULED, SCHEDULED, RUNNING, CANCELLED, FINISHED, FAILED, OUT_OF_CREDITS, PANICKED = range(9)
ADMIN = bytes(32)
UNCHANGED_S = 600  # age at which a proposal can be approved by its address alone


def join(scene: Scene, provider: str) -> None:
    client = scene.client
    client.send(provider, client.providers.functions.register(HARDWARE, PRICES, LABELS))
    scene.anvil.pass_time(UNCHANGED_S)
    client.send(scene.operator, client.providers.functions.approve(provider))
    scene.anvil.pass_time(1)  # jobs without a ceiling go only to prices that were in force before their request


def request(scene: Scene, locked: int = 200 * CREDIT, *, delegate: bool = False) -> bytes:
    client = scene.client
    client.send(scene.customer, client.credit.functions.approve(client.meta_scheduler, locked))
    receipt = client.send(scene.customer, client.scheduler.functions.requestNewJob(DEFINITION, locked, NAME, delegate))
    return bytes(client.events_of(receipt, client.scheduler, "NewJobRequestEvent")[0]["jobId"])


def running(scene: Scene, locked: int = 200 * CREDIT, *, delegate: bool = False) -> bytes:
    client = scene.client
    job_id = request(scene, locked, delegate=delegate)
    client.send(scene.operator, client.scheduler.functions.metaSchedule(job_id, scene.provider))
    client.send(scene.provider, client.scheduler.functions.claimNextJob())
    client.send(scene.provider, client.scheduler.functions.providerSetJobStatus(job_id, RUNNING, 0, "", 0))
    return job_id


def compiled(contract: str) -> list[dict[str, Any]]:
    """Return the ABI of a deployed contract."""
    text = (importlib.resources.files("deepgrid.chain") / "compiled" / f"{contract}.json").read_text()
    entries: list[dict[str, Any]] = json.loads(text)["abi"]
    return entries
