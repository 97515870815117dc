"""What a job needs in addition to CPUs, memory and GPUs: conditions on the labels of features. Pure.

Programs of customers add them to the labels of a job, so that it is assigned only to a cluster that can run it. A
cluster checks them again, because other programs do not add them.
"""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.lifecycle import feature_labels as keys
from deepgrid.lifecycle.job import Affinity
from deepgrid.workflow.models import Definition, StepRun
from deepgrid.workflow.models.walk import steps_in

ANY_RUNTIME = Affinity(keys.CONTAINERS, "!=", "none")  # a cluster without one has no such label
APPTAINER = Affinity(keys.CONTAINERS, "in", "apptainer")
PRIVATE_FILES = Affinity(keys.PRIVATE, "!=", "none")  # the label of each cluster has another value


def needs_of(job: Definition) -> tuple[Affinity, ...]:
    """Return the conditions that a cluster must meet for what the definition uses, ordered by key.

    HTTP is not among them: every cluster has it, or its doctor complains.
    """
    found = set()
    if any(place and place.s3 and not place.http for place in (job.input, job.output)):
        found.add(_has(keys.S3))
    if job.virtual_networks:  # their hubs
        found |= {_has(keys.PASTA), _has(keys.WIREGUARD)}
    if job.private_files:
        found.add(PRIVATE_FILES)
    for _, step in steps_in(job.steps, ()):
        found |= set(_needs_of_run(step.run)) if step.run else set()
    if APPTAINER in found:
        found.discard(ANY_RUNTIME)
    return tuple(sorted(found, key=lambda need: need.key))


def _needs_of_run(run: StepRun) -> Iterator[Affinity]:
    if container := run.container:
        yield APPTAINER if container.apptainer or container.deepsquare_hosted else ANY_RUNTIME
    if run.network in ("pasta", "slirp4netns"):
        yield _has(keys.PASTA if run.network == "pasta" else keys.SLIRP4NETNS)
    if any(one.wireguard or one.vnet for one in run.custom_network_interfaces):
        yield _has(keys.WIREGUARD)


def _has(key: str) -> Affinity:
    return Affinity(key, "==", keys.YES)
