"""Networks: the interfaces of a step's namespace, and the hubs of a job's virtual networks.

Secrets reach a task as variables `__dg_interface_N` of its `srun`. The templates unset them before the command
starts. The command line has the other settings.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import Definition, StepRun, Wireguard
from deepgrid.workflow.models.walk import steps_in


@dataclass(frozen=True, slots=True)
class Hub:
    """The router of one virtual network. `peers` are the addresses of its steps; each has its own key."""

    number: int
    gateway: Quoted
    peers: tuple[Quoted, ...]


def uses_networks(job: Definition) -> bool:
    """Return whether the script needs the code for network namespaces."""
    return bool(job.virtual_networks) or any(step.run and step.run.apart for _, step in steps_in(job.steps, ()))


def hubs(job: Definition) -> list[Hub]:
    """Return the hubs of all virtual networks, numbered from 0 in the order of the file."""
    peers: dict[str, set[str]] = {network.name: set() for network in job.virtual_networks}
    for _, step in steps_in(job.steps, ()):
        for interface in step.run.custom_network_interfaces if step.run else ():
            if interface.vnet:
                peers[interface.vnet.name].add(str(ipaddress.ip_interface(interface.vnet.address).ip))
    return [
        Hub(
            number,
            quote(ipaddress.ip_interface(network.gateway_address).with_prefixlen),
            tuple(map(quote, sorted(peers[network.name]))),
        )
        for number, network in enumerate(job.virtual_networks)
    ]


def namespace_words(run: StepRun, mapping: list[str]) -> list[str]:
    """Return the words before `--` that describe the namespace to a task."""
    interfaces = [
        f"bore{number}={interface.bore.target_port}@{interface.bore.server}"
        if interface.bore
        else f"{'wg' if interface.wireguard else 'vnet'}{number}"
        for number, interface in enumerate(run.custom_network_interfaces)
    ]
    return [str(run.network), *mapping, *(f"dns={server}" for server in run.dns), *interfaces]


def interface_secrets(run: StepRun) -> Iterator[tuple[int, Quoted]]:
    """Yield the secret settings of interfaces that are known before the job runs, by number."""
    for number, interface in enumerate(run.custom_network_interfaces):
        if interface.wireguard:
            yield number, quote(_configuration(interface.wireguard))
        elif interface.bore and interface.bore.secret is not None:
            yield number, quote(interface.bore.secret)


def memberships(job: Definition, run: StepRun) -> Iterator[tuple[int, Quoted]]:
    """Yield the arguments of `vnet_configuration`, which adds the keys, for interfaces in virtual networks."""
    hubs = {network.name: number for number, network in enumerate(job.virtual_networks)}
    for number, interface in enumerate(run.custom_network_interfaces):
        if interface.vnet:
            own = ipaddress.ip_interface(interface.vnet.address)
            words = (own.with_prefixlen, str(own.network), str(own.ip))
            yield number, Quoted(" ".join([str(hubs[interface.vnet.name]), *map(quote, words)]))


def _configuration(interface: Wireguard) -> str:
    """Return the configuration file of wg-quick. The models forbid line ends in its values."""
    lines = ["[Interface]", f"PrivateKey = {interface.private_key}", *(f"Address = {a}" for a in interface.address)]
    for peer in interface.peers:
        lines += ["", "[Peer]", f"PublicKey = {peer.public_key}"]
        lines += [f"PresharedKey = {peer.pre_shared_key}"] if peer.pre_shared_key else []
        lines += [f"AllowedIPs = {', '.join(peer.allowed_ips)}"] if peer.allowed_ips else []
        lines += [f"Endpoint = {peer.endpoint}"] if peer.endpoint else []
        lines += [f"PersistentKeepalive = {peer.persistent_keepalive}"] if peer.persistent_keepalive else []
    return "\n".join(lines) + "\n"
