"""Makes the configuration of nginx in front of the services."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from deepgrid.errors import ConfigurationError
from deepgrid.files.text_templates import text_templates
from deepgrid.safe_http import is_loopback

RECORDED = "# settings: "
DIGEST = "@digest@"  # of the file, which nginx reports at /v1/proxy
REFUSALS = (
    ("@large", 413, "the body is too large"),
    ("@many", 429, "too many requests from your address; try again in 1 s"),
    ("@silent", 503, "the services of the grid do not answer at the moment"),
)


def _must(pattern: str, be: str) -> AfterValidator:
    """Refuse what does not match, with a sentence that ends like this."""

    def check(value: Path | str) -> Path | str:
        if not re.fullmatch(pattern, str(value)):
            raise ValueError(f"{value if isinstance(value, Path) else repr(value[:60])} must {be}")
        return value

    return AfterValidator(check)


def _address(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not 1 <= int(port) <= 65535:
        raise ValueError(f"{port} is no port: the last one is 65535")
    if host:
        ipaddress.ip_address(host.strip("[]"))
    return value


PlainPath = Annotated[Path, _must(r"/[A-Za-z0-9._/+@=-]*", "be an absolute path of letters, digits and ._/+@=-")]
Word = Annotated[str, _must(r"[A-Za-z0-9._*-]*", "consist of letters, digits, dots and dashes")]
Workers = Annotated[str, _must(r"auto|[1-9][0-9]{0,2}", "be auto, or a number up to 999")]
Listen = Annotated[
    str,
    _must(r"(?:([0-9.]+|\[[0-9a-f:]+\]):)?([0-9]{1,5})", "be a port, or an IP address with a port"),
    AfterValidator(_address),
]


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """Limits of the proxy. Times are seconds. An address is a source address (IPv6: its /64)."""

    connections: int = 8192  # of each worker process; the oldest idle one makes room for a new one
    running: int = 640  # concurrent requests per address, including readers that wait for output
    tunnels: int = 1024  # WebSockets per address; a customer has one per session
    sending: int = 64  # concurrent requests with bodies per address; a body may have 1 MiB
    public_sending: int = 512  # the same for the web app and its relay, with 256 KiB each
    public_running: int = 2048  # requests to the web app and public reads, per address; they do not count as `running`
    requests_per_s: int = 100  # the other requests of an address
    requests_at_once: int = 1000
    public_reads_per_s: int = 600  # reads of notices and of places in the queue
    public_reads_at_once: int = 5000
    compat_per_s: int = 20  # existing clients
    compat_at_once: int = 200
    head_within_s: int = 10
    body_within_s: int = 10  # the next part of a body
    answer_within_s: int = 60  # the next part of an answer
    keep_alive_s: int = 60  # an idle connection


class ProxySettings(BaseModel):
    """The operator's choices. The file's second line has all of them, so that the doctor can make the file again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sockets: tuple[PlainPath, ...]  # folders of the processes of the services (`dps services serve --sockets`)
    listen: tuple[Listen, ...] = ("443", "[::]:443")  # addresses with ports, as nginx writes them
    name: Word = ""  # host name of the services
    certificate: PlainPath | None = None  # PEM; without it, only this machine may be listened to
    key: PlainPath | None = None
    clear_grpc: Listen | None = None  # address of gRPC in clear text, for clients on this machine
    behind: tuple[str, ...] = ()  # networks of proxies in front, whose X-Forwarded-For is trusted
    state: PlainPath = Path("/var/lib/deepgrid/proxy")  # nginx's own files
    account: Word | None = None  # of nginx's workers, if root starts it
    workers: Workers = "auto"  # processes of nginx

    @field_validator("behind")
    @classmethod
    def _require_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ipaddress.ip_network(network)
        return value

    @model_validator(mode="after")
    def _require_secrecy(self) -> Self:
        if not self.sockets:
            raise ValueError("at least one folder with sockets of the services is needed")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key")
        clear = () if self.certificate else self.listen
        for address in (*clear, *([self.clear_grpc] if self.clear_grpc else [])):
            if not is_loopback(address.rpartition(":")[0].strip("[]")):
                raise ValueError(f"at {address} other machines would send secrets in clear text: give a certificate")
        return self


def proxy_file(settings: ProxySettings, limits: EdgeLimits | None = None) -> str:
    """Return the text of nginx's configuration. Equal settings make equal texts."""
    recorded = RECORDED.removeprefix("# ") + settings.model_dump_json(exclude_defaults=True)
    template = text_templates("deepgrid.services.edge", ".").get_template("proxy.conf.j2")
    text = template.render(settings=settings, limits=limits or EdgeLimits(), recorded=recorded, refusals=REFUSALS)
    return text.replace(DIGEST, hashlib.sha256(text.encode()).hexdigest()[:16])


def digest_in(text: str) -> str:
    """Return the digest that nginx reports when it runs this configuration."""
    found = re.search(r'"file": "([0-9a-f]{16})"', text)
    return found[1] if found else ""


def proxy_settings(**chosen: Any) -> ProxySettings:
    """Return the settings that an operator chose. Raises ConfigurationError with one sentence per fault."""
    try:
        return ProxySettings(**chosen)
    except ValidationError as error:
        faults = (item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise ConfigurationError(f"The proxy cannot be configured: {'; '.join(faults)}.") from None


def deployed_settings(text: str) -> ProxySettings:
    """Return the settings of a configuration. Raises ConfigurationError if `proxy_file` did not make it."""
    for line in text.splitlines()[:5]:
        if line.startswith(RECORDED):
            try:
                return ProxySettings.model_validate_json(line.removeprefix(RECORDED))
            except ValidationError:
                break
    raise ConfigurationError(
        "The proxy's file was not made by this release.", next_step="Make it with `dps services proxy`."
    )
