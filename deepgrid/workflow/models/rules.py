"""Rules between the parts of a job definition. Each fault has its place.

A step can wait for earlier launches in its own scope. Scopes are the job itself and everything that runs in a
shell of its own: a launch, a module, an iteration of a parallel loop, the body of a step with `catch` or
`finally`, and each of these two. Groups, sequential loops and conditions belong to the scope around them.
So cycles are impossible. Steps that are passed to a module are checked where the module places them.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from deepgrid.workflow.models.base import NotKnown
from deepgrid.workflow.models.fields import LONGEST_BYTES
from deepgrid.workflow.models.network import NetworkInterface, VNet
from deepgrid.workflow.models.running import StepRun
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.models.walk import Fault, JobParts, steps_in
from deepgrid.workflow.yaml_nodes import Path

MOST_STEPS = 1000  # shellcheck takes 5 ms and half a MB per step
MOST_NESTED = 16  # each level is a nested shell, and a nested call in this code
MOST_PARALLEL = 1000  # processes that one loop starts at the same time

MOST_SHOWN = 100  # per kind of fault


def faults_in(job: JobParts) -> Iterator[Fault]:
    """Yield all disagreements between the parts of a job. Malformed parts are skipped."""
    yield from _where_known(_too_many(job))
    yield from _where_known(misplaced_networks(job))
    yield from _where_known(_in_steps(job))


def faults_in_steps(steps: Sequence[Step], path: Path, job: JobParts, above: int = 0) -> Iterator[Fault]:
    """Yield the same for steps at `path` in this job, nested `above` levels deep."""
    for place, step in steps_in(steps, path):
        if level(place) + above > MOST_NESTED:
            yield place, f"is nested deeper than {MOST_NESTED} steps"
        for rule in (_too_large_resources, _too_parallel, misplaced_interfaces):
            yield from _where_known(rule(step, job, place))
    yield from _where_known(islice(misplaced_waits(steps, path), MOST_SHOWN))


def _where_known(rule: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the findings of a rule, until it reads a malformed part."""
    try:
        yield from rule
    except NotKnown:
        return


def _too_many(job: JobParts) -> Iterator[Fault]:
    if sum(1 for _ in steps_in(job.steps, ("steps",))) > MOST_STEPS:
        yield ("steps",), f"must not have more than {MOST_STEPS} steps in all, with those inside of steps"


def _in_steps(job: JobParts) -> Iterator[Fault]:
    yield from faults_in_steps(job.steps, ("steps",), job)


def level(place: Path) -> int:
    """Return the nesting level of a place, in steps."""
    return sum(isinstance(part, int) for part in place)


def _too_large_resources(step: Step, job: JobParts, place: Path) -> Iterator[Fault]:
    """Yield resources of a step that exceed the whole job's."""
    if not step.run:
        return
    wanted, has = step.run.resources_in(job.resources), job.resources
    for what, need, limit in (
        ("CPUs", wanted.cpus, has.cpus),
        ("MB of memory", wanted.mem_mb, has.mem_mb),
        ("GPUs", wanted.gpus, has.gpus),
    ):
        if need > limit:
            yield (*place, "run", "resources"), f"asks for {need} {what} in all, the job has {limit}"


def _too_parallel(step: Step, _job: JobParts, place: Path) -> Iterator[Fault]:
    if step.for_ and step.for_.parallel and step.for_.iterations > MOST_PARALLEL:
        yield (*place, "for"), f"must not start more than {MOST_PARALLEL} iterations at once"


def misplaced_waits(steps: Sequence[Step], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield entries of `dependsOn` that name no possible launch, each with its fault."""
    everywhere: dict[str, Path] = {}
    for place, step in steps_in(steps, path):
        if step.launch and step.launch.handle_name:
            everywhere.setdefault(step.launch.handle_name.upper(), place)
    for place, handle, known in _waits(steps, path, []):
        if handle.upper() not in known:
            yield place, _sentence(place, handle, known, everywhere.get(handle.upper()))


def _waits(steps: Sequence[Step], path: Path, known: list[str]) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield each wait, with the handles (in capitals) that are known at its place. Each launch is added to `known`."""
    for index, step in enumerate(steps):
        place = (*path, index)
        for number, handle in enumerate(vars(step).get("depends_on", ())):  # a malformed entry must not hide launches
            yield (*place, "dependsOn", number), handle, known
        inner = [] if step.catch or step.finally_ else known
        yield from _waits(step.steps, (*place, "steps"), inner)
        if step.for_:
            yield from _waits(step.for_.steps, (*place, "for", "steps"), [] if step.for_.parallel else inner)
        if step.module:
            yield from _waits(step.module.steps, (*place, "module", "steps"), [])
        if step.launch:
            yield from _waits(step.launch.steps, (*place, "launch", "steps"), [])
            if step.launch.handle_name:
                known.append(step.launch.handle_name.upper())
        yield from _waits(step.catch, (*place, "catch"), [])
        yield from _waits(step.finally_, (*place, "finally"), [])


def _sentence(place: Path, handle: str, known: Sequence[str], launched: Path | None) -> str:
    if launched is not None and place[: len(launched)] == launched:
        return f"would wait for {handle}, which contains this step, forever"
    if launched is not None:
        return f"can only wait for launches before this step in the same scope; {handle} is later or in another scope"
    near = difflib.get_close_matches(handle.upper(), known, n=1)
    hint = f" (did you mean {near[0].lower()}?)" if near else ""
    return f"no step launches {handle}{hint}"


MOST_PEERS = 250  # addresses of steps per virtual network; their keys share one variable of its hub
MOST_NETWORKS = 16  # each needs two processes in addition to the steps


def misplaced_networks(job: JobParts) -> Iterator[Fault]:
    """Virtual networks with the same name, or with too many addresses."""
    addresses: dict[str, set[str]] = {}
    if len(job.virtual_networks) > MOST_NETWORKS:
        yield ("virtualNetworks",), f"must not be more than {MOST_NETWORKS}"
    for index, network in enumerate(job.virtual_networks):
        if network.name in addresses:
            yield ("virtualNetworks", index, "name"), "is the name of another network already"
        addresses[network.name] = set()
    for _, step in steps_in(job.steps, ("steps",)):
        for interface in step.run.custom_network_interfaces if step.run else ():
            if interface.vnet:
                addresses.get(interface.vnet.name, set()).add(_ip(interface.vnet.address))
    for index, network in enumerate(job.virtual_networks):
        if len(addresses[network.name]) > MOST_PEERS:
            yield ("virtualNetworks", index), f"must not have more than {MOST_PEERS} addresses of steps"


def misplaced_interfaces(step: Step, job: JobParts, place: Path) -> Iterator[Fault]:
    """Yield interfaces that cannot work in this step."""
    for index, interface in enumerate(step.run.custom_network_interfaces if step.run else ()):
        where = (*place, "run", "customNetworkInterfaces", index)
        assert step.run
        if not interface.bore:
            yield from _wireguard(interface, step.run, where)
        if interface.vnet:
            yield from _member(interface.vnet, job, (*where, "vnet"))


def _wireguard(interface: NetworkInterface, run: StepRun, place: Path) -> Iterator[Fault]:
    kind = "wireguard" if interface.wireguard else "vnet"
    if run.map_uid != 0:
        yield (*place, kind), "needs mapUid: 0 of the run, or the step may not bring it up"
    if interface.vnet and run.resources and (run.resources.tasks or 1) > 1:
        yield (*place, kind), "needs resources.tasks: 1, or several tasks would have this address"
    if len(interface.model_dump_json()) > LONGEST_BYTES:
        yield (*place, kind), f"must not be longer than {LONGEST_BYTES} bytes in all"


def _member(member: VNet, job: JobParts, place: Path) -> Iterator[Fault]:
    gateways = {network.name: _ip(network.gateway_address) for network in job.virtual_networks}
    if member.name not in gateways:
        yield (*place, "name"), "missing virtual network: virtualNetworks has no network of this name"
    elif _ip(member.address) == gateways[member.name]:
        yield (*place, "address"), "is the address of the network's gateway"


def _ip(address: str) -> str:
    return str(ipaddress.ip_interface(address).ip)
