"""Networks of a job and network interfaces of a step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import (
    EMPTY_LIST,
    SECRET,
    Cidr,
    CountOrNone,
    HostPort,
    IpOrDomain,
    Port,
    Text,
    WireguardKey,
)


class VirtualNetwork(Model):
    """A WireGuard network inside the job, without access to the Internet."""

    name: Text
    """Unique name, to which `vnet.name` of a step refers."""
    gateway_address: Cidr
    """Address of the router inside the job, with its prefix length."""


class WireguardPeer(Model):
    """The other end of a WireGuard tunnel."""

    public_key: WireguardKey
    """Its public key."""
    pre_shared_key: Annotated[WireguardKey | None, SECRET] = Field(default=None, repr=False)
    """A secret that both ends know, on top of the keys."""
    allowed_ips: Annotated[tuple[Cidr, ...], EMPTY_LIST] = Field(default=(), alias="allowedIPs")
    """Address ranges that are routed to this peer."""
    endpoint: HostPort | None = None
    """host:port on which it listens."""
    persistent_keepalive: CountOrNone | None = None
    """Seconds between keepalive packets; 25 helps behind NAT."""


class Wireguard(Model):
    """A WireGuard interface; needs mapUid 0."""

    private_key: Annotated[WireguardKey, SECRET] = Field(repr=False)
    """Private key of this end."""
    address: Annotated[tuple[Cidr, ...], EMPTY_LIST] = ()
    """Addresses of the interface."""
    peers: Annotated[tuple[WireguardPeer, ...], EMPTY_LIST] = ()
    """The other ends."""


class VNet(Model):
    """An interface in one of the job's virtual networks; needs mapUid 0."""

    name: Text
    """Name of the virtual network."""
    address: Cidr
    """Address of the interface. Its network part is routed."""


class Bore(Model):
    """A tunnel from a bore server, which has a public address, to a port of the step. The server speaks SSH."""

    OUTDATED = {"address": "boreAddress: HOST:PORT", "port": "boreAddress: HOST:PORT"}  # noqa: RUF012 - as declared

    bore_address: HostPort | None = None
    """host:port of the bore server; its port is usually 2200."""
    target_port: Port
    """Port of the step to which the tunnel leads."""
    secret: Annotated[Text | None, SECRET] = Field(default=None, repr=False)
    """Password of the bore server."""
    address: IpOrDomain | None = None
    """Old form: host of the bore server."""
    port: Port | None = None
    """Old form: port of the bore server."""

    @model_validator(mode="after")
    def _one_form(self) -> Bore:
        if self.bore_address is None and (self.address is None or self.port is None):
            raise PydanticCustomError("one_of", "needs boreAddress")
        if self.bore_address is not None and (self.address is not None or self.port is not None):
            raise PydanticCustomError("one_of", "has both boreAddress and the old address and port; keep boreAddress")
        return self

    @property
    def server(self) -> str:
        """host:port of the bore server, in either form. An IPv6 address has brackets."""
        host = f"[{self.address}]" if self.address and ":" in self.address else self.address
        return self.bore_address or f"{host}:{self.port}"


class NetworkInterface(Model):
    """One interface of a step; exactly one of its fields is set."""

    wireguard: Wireguard | None = None
    """A WireGuard tunnel."""
    vnet: VNet | None = None
    """A virtual network of the job."""
    bore: Bore | None = None
    """A tunnel from a bore server."""

    @model_validator(mode="after")
    def _one_kind(self) -> NetworkInterface:
        if sum(kind is not None for kind in (self.wireguard, self.vnet, self.bore)) != 1:
            raise PydanticCustomError("one_of", "must be exactly one of wireguard, vnet, bore")
        return self
