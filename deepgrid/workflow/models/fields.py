"""The types of values in the workflow language, each with its rule.

Values are not converted: a text never becomes a number, a number never a truth value. Error messages do not
repeat the value. Each type has the pattern that the JSON schema gives to editors.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from deepgrid.plain_text import character_name

LARGEST = 2**31 - 1  # Slurm's counts have 32 bits
MOST_CPUS, MOST_MEM_MB = 10**8, 10**12  # no cluster has more; exact in every language, and within the contract's range
LONGEST_BYTES = 120_000  # one argument or variable has at most 128 KiB, its name included

# Bash sets these itself, makes them read-only, or evaluates their values as code.
SHELL_NAMES = frozenset(
    """_ BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT
    BASH_EXECUTION_STRING BASH_LINENO BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_TRAPSIG
    BASH_VERSINFO BASH_VERSION BASH_XTRACEFD DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME FUNCNEST GROUPS
    HISTCMD LINENO OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SRANDOM UID""".split()  # noqa: SIM905 - a list literal would take four times the room
)
LIBRARY_NAMES = frozenset({"PATH", "LD_LIBRARY_PATH"})
OWN_PREFIX = "__dg_"  # variables of the batch script itself

_ENV_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_HANDLE = re.compile(r"[a-zA-Z0-9_]+\Z")
_IMAGE = re.compile(r"(/.*|[a-z0-9/._-]+(:[A-Za-z0-9._:-]+)?(@sha256:[0-9a-f]{64})?)\Z", re.S)
_ABSOLUTE = re.compile("/")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_BUNDLE = re.compile(r"[0-9a-f]{32}\Z")
_HEX = re.compile(r"([0-9a-f]{2}){1,500}\Z")
_ACCOUNT = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\Z")
_URL = re.compile(r"""[!#-;=?-\[\]_a-z~]+\Z""")  # the characters that RFC 3986 allows
_KEY = re.compile(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\Z")  # 32 bytes in base64
_MEMORY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([KMGT])(?:i?B?)", re.IGNORECASE | re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}\Z")


def _refuse(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("rule", sentence)


def _sendable(text: str) -> str:
    """Refuse text that no process can receive: NUL, lone surrogates, more bytes than Linux allows per argument."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise _refuse("must not contain NUL or lone surrogates")
    if len(text.encode()) > LONGEST_BYTES:
        raise _refuse(f"must not be longer than {LONGEST_BYTES} bytes")
    return text


def _matching(pattern: re.Pattern[str], sentence: str) -> AfterValidator:
    """Refuse text that does not begin with the pattern."""

    def check(text: str) -> str:
        if not pattern.match(text):
            raise _refuse(sentence)
        return text

    return AfterValidator(check)


def _env_name(name: str) -> str:
    if not _ENV_NAME.match(name):
        raise _refuse("must be letters, digits and '_', not starting with a digit")
    if name in LIBRARY_NAMES:
        raise _refuse("PATH and LD_LIBRARY_PATH cannot be set; set them inside the command")
    if name in SHELL_NAMES or name.startswith(OWN_PREFIX):
        raise _refuse("is a variable of the shell itself; choose another name")
    return name


def _address(schemes: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            parts = urlsplit(text)
            has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            parts, has_host = None, False
        if parts is None or parts.scheme not in schemes:
            raise _refuse(f"must be an address that starts with {' or '.join(f'{s}://' for s in schemes)}")
        wrong = next((c for c in text if not _URL.match(c)), None)
        if wrong is not None and wrong in parts.netloc:
            raise _refuse(f"must have a host name without {character_name(wrong)}; write it in ASCII (xn--...)")
        if wrong is not None:
            raise _refuse(f"must not contain {character_name(wrong)}; write {quote(wrong)} instead")
        if not has_host:
            raise _refuse("must be an address with a host, and a port from 1 to 65535 if it names one")
        return text

    return check


def _bucket(text: str) -> str:
    _address(("s3",))(text)
    if text.endswith("/"):
        raise _refuse("must not end with '/'")
    return text


def _ip(text: str) -> str:
    try:
        ipaddress.ip_address(text if "%" not in text else "")  # the scope of an IPv6 address could be any text
    except ValueError:
        raise _refuse("must be an IP address") from None
    return text


def _cidr(text: str) -> str:
    try:
        ipaddress.ip_interface(text if "%" not in text else "")
    except ValueError:
        raise _refuse("must be an address with a prefix length, like 10.0.0.1/24") from None
    if "/" not in text:
        raise _refuse("must be an address with a prefix length, like 10.0.0.1/24")
    return text


def _is_host(text: str) -> bool:
    return len(text) <= 253 and all(len(part) <= 63 and _LABEL.match(part) for part in text.split("."))


def _hostname(text: str) -> str:
    if not _is_host(text) or not text[0].isalpha():
        raise _refuse("must be a host name: letters, digits, '-' and '.', starting with a letter, without a port")
    return text


def _host_port(text: str) -> str:
    host, _, port = text.rpartition(":")
    right = _is_host(host) or (host.startswith("[") and host.endswith("]") and _is_ip6(host[1:-1]))
    if not right or not _PORT.match(port) or not 1 <= int(port) <= 65535:
        raise _refuse("must be host:port with a port from 1 to 65535")
    return text


def _is_ip6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def megabytes_in(text: str) -> int | None:
    """Return the MB of an amount of memory with a unit, as Slurm counts them: `4G`, `4 GB` and `4GiB` are 4096.

    None for any other text, and for an amount that is not a whole number of MB.
    """
    found = _MEMORY.fullmatch(text)
    if not found:
        return None
    amount = Decimal(found[1]) * Decimal(1024) ** ("KMGT".index(found[2].upper()) - 1)
    return int(amount) if amount == int(amount) else None


def _ip_or_domain(text: str) -> str:
    if not _is_ip6(text) and not (_is_host(text) and "." in text):
        raise _refuse("must be an IP address or a full domain name")
    return text


def _none_is(empty: object) -> BeforeValidator:
    """Return a validator for empty fields, such as `env:`, which mean their default."""
    return BeforeValidator(lambda value: empty if value is None else value)


def _schema_pattern(pattern: str) -> Any:
    return Field(json_schema_extra={"pattern": pattern})


Count = Annotated[int, Field(strict=True, ge=1, le=MOST_CPUS)]
CountOrNone = Annotated[int, Field(strict=True, ge=0, le=MOST_CPUS)]
Number = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
UserId = Annotated[int, Field(strict=True, ge=0, le=2**32 - 2)]
OCTAL = "octal"  # marks numbers that files write in octal, with a leading 0
Mode = Annotated[int, Field(strict=True, ge=0, le=0o777), OCTAL]
MEGABYTES = "megabytes"  # marks numbers of MB that files may write with a unit, such as 4G
Megabytes = Annotated[int, Field(strict=True, ge=1, le=MOST_CPUS, json_schema_extra={"x-unit": "MB"}), MEGABYTES]
Truth = Annotated[bool, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True), _none_is(False)]
EMPTY_LIST = _none_is(())

Text = Annotated[str, Field(strict=True), AfterValidator(_sendable)]
EnvName = Annotated[Text, AfterValidator(_env_name), _schema_pattern("^[a-zA-Z_][a-zA-Z0-9_]*$")]
Handle = Annotated[Text, _matching(_HANDLE, "must be letters, digits and '_'"), _schema_pattern("^[a-zA-Z0-9_]+$")]
Commit = Annotated[
    Text,
    _matching(_COMMIT, "must be a commit: 40 or 64 hexadecimal digits"),
    _schema_pattern("^[0-9a-f]{40}([0-9a-f]{24})?$"),
]
HexText = Annotated[Text, _matching(_HEX, "must be hexadecimal digits"), _schema_pattern("^([0-9a-f]{2}){1,500}$")]
Account = Annotated[
    Text, _matching(_ACCOUNT, "must be the address of an account"), _schema_pattern("^0x[0-9a-fA-F]{40}$")
]
BundleId = Annotated[
    Text,
    _matching(_BUNDLE, "must be 32 hexadecimal digits, as the grid numbers files"),
    _schema_pattern("^[0-9a-f]{32}$"),
]
JobNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
AbsolutePath = Annotated[Text, _matching(_ABSOLUTE, "must start with '/'"), _schema_pattern("^/")]
Image = Annotated[
    Text,
    _matching(
        _IMAGE, "must be a name in lower case, with or without :tag and @sha256:digest, or a path that starts with '/'"
    ),
    _schema_pattern("^(/.*|[a-z0-9/._-]+(:[A-Za-z0-9._:-]+)?(@sha256:[0-9a-f]{64})?)$"),
]
WebAddress = Annotated[Text, AfterValidator(_address(("http", "https"))), _schema_pattern("^https?://")]
Bucket = Annotated[Text, AfterValidator(_bucket), _schema_pattern("^s3://.*[^/]$")]
Ip = Annotated[Text, AfterValidator(_ip)]
Cidr = Annotated[Text, AfterValidator(_cidr), _schema_pattern("^[0-9a-fA-F.:]+/[0-9]+$")]
Hostname = Annotated[Text, AfterValidator(_hostname), _schema_pattern("^[A-Za-z][A-Za-z0-9.-]*$")]
HostPort = Annotated[Text, AfterValidator(_host_port), _schema_pattern("^.+:[0-9]+$")]
WireguardKey = Annotated[
    Text,
    _matching(_KEY, "must be a WireGuard key: 44 characters, as `wg genkey` and `wg pubkey` print them"),
    _schema_pattern("^[A-Za-z0-9+/]{43}=$"),
]
IpOrDomain = Annotated[Text, AfterValidator(_ip_or_domain)]

SECRET = Field(json_schema_extra={"x-secret": True})
"""Marks a field whose value is a secret. Editors and web pages then hide the value and do not send it anywhere."""
