"""Checks that the network interfaces of steps can come up, and that virtual networks are distinct."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from deepgrid.workflow.models.fields import LONGEST_BYTES
from deepgrid.workflow.models.network import NetworkInterface, VNet
from deepgrid.workflow.models.rules.walk import Fault, JobParts, steps_in
from deepgrid.workflow.models.running import StepRun
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.yaml_text.yaml_nodes import Path

MOST_PEERS = 250  # addresses of steps per virtual network; their keys share one variable of its hub
MOST_NETWORKS = 16  # each needs two processes beside the steps


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
    """Interfaces that cannot work in this step."""
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
