"""Messages of Slurm's commands, and what each means for a request. One table serves sbatch, scontrol and the queries.

The error decides. It is the text after `Batch job submission failed:`, or the last line without such a text. Lines
before it are a site's own: banners, balances, policies of job_submit.lua. They may contain any words, so they decide
nothing. docs/reference/slurm-words.md is generated from this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a message means for the request."""

    OUTAGE = "Slurm is down or being repaired: tried again"
    LIMIT = "the account has as many jobs as it may submit: tried again, and fewer jobs are claimed"
    FINAL = "Slurm refuses the job: it is given back"


@dataclass(frozen=True, slots=True)
class Complaint:
    """How messages of one kind begin, after the command's name. `cause` is for people."""

    kind: Kind
    cause: str
    texts: tuple[str, ...]


COMPLAINTS = (
    Complaint(
        Kind.OUTAGE,
        "the controller or the network does not answer",
        (
            "Unable to contact", "Unable to connect", "Communication ", "Message send failure",
            "Message receive failure", "Unexpected message received", "Insane message length",
            "Unexpected missing socket", "Can't find an address", "Unable to process incoming",
            "Unable to process outgoing", "Read would block", "Write would block", "Connection ",
            "Kernel reported delayed socket error", "Process is shutting down", "Header lengths are longer",
            "Socket timed out", "Zero Bytes were transmitted", "Broken pipe", "No route to host", "Network is ",
            "Transport endpoint", "Operation now in progress", "Operation timed out",
        ),
    ),
    Complaint(
        Kind.OUTAGE,
        "the controller is busy, or a backup takes over",
        (
            "Slurm backup controller in standby mode", "Controller is in standby mode", "Rate limit exceeded",
            "Slurm temporarily unable", "Slurm job queue full", "Job creation temporarily disabled",
            "Unable to create job record, try again", "Job can not be altered now", "Resource temporarily unavailable",
            "Slurm internal error",
        ),
    ),
    Complaint(
        Kind.OUTAGE,
        "the controller cannot write its files: its disk may be full",
        ("I/O error writing script/environment to file", "No space left on device", "Disk quota exceeded"),
    ),
    Complaint(
        Kind.OUTAGE,
        "Slurm's authentication (munge) does not work",
        (
            "Protocol authentication error", "Invalid authentication credential", "Authentication credential",
            "Cannot unpack credential", "Token Generation failed", "Munge ", "If munged is up", "Failed to access",
            "cannot create auth context", "cannot find auth plugin", "failed to initialize auth plugin",
            "auth_g_", "Error generating job credential", "Job credential", "Invalid job credential",
        ),
    ),
    Complaint(
        Kind.OUTAGE,
        "Slurm is being upgraded, or its installation on the login node is broken",
        (
            "Incompatible versions of client and server code", "I/O stream version number error",
            "error while loading shared libraries", "Plugin initialization failed", "Couldn't load specified plugin",
            "cannot create select context", "failed to run command", "sbatch: not found", "sbatch: command not found",
        ),
    ),
    Complaint(
        Kind.OUTAGE,
        "the login node has no configuration of Slurm",
        (
            "Unable to process configuration file", "Unable to establish controller machine",
            "Could not establish a configuration source", "fetch_config", "_establish_config_source",
            "resolve_ctls_from_dns_srv", "s_p_parse_file", "ClusterName needs to be specified",
        ),
    ),
    Complaint(
        Kind.OUTAGE,
        "the partition or its nodes take no jobs now",
        (
            "Required node not available", "Required partition not available", "Partition in DOWN state",
            "Requested nodes are busy", "System submissions disabled", "Requested operation is presently disabled",
            "Job can not start due to maintenance", "Reboot already in progress", "Max powered up nodes reached",
            "Licenses currently unavailable", "Requested reservation not usable now",
        ),
    ),
    Complaint(Kind.LIMIT, "the cluster has as many jobs as it can hold", ("MaxJobCount limit reached",)),
)  # fmt: skip

# Slurm has one error for all limits of accounts. The line before it is the limit's name. Only limits on the number of
# submitted jobs go away by themselves.
POLICY = "Job violates accounting/QOS policy"
_LIMIT_NAME = re.compile(r"(?:QOS|Assoc|Max)[A-Za-z]+")
_ERROR = re.compile(r"(?:\w+: )?(?:(?:error|fatal): )?(?:Batch job submission failed|allocation failure): (.*)")
_BEFORE = re.compile(r"^(\w+: )?((error|fatal): )?(\w+ error: )?")


def pattern(kind: Kind) -> str:
    """Return an extended regular expression for messages of this kind.

    The text is at the beginning of the message, or after a name such as a function of Slurm.
    """
    texts = [text for one in COMPLAINTS if one.kind is kind for text in one.texts]
    escaped = [re.sub(r"([.()\[\]*+?^$|{}\\])", r"\\\1", text) for text in texts]
    if kind is Kind.LIMIT:
        escaped.append(f"{POLICY}.*Submit[A-Za-z]*\\)$")
    return f"(^|: )({'|'.join(escaped)})"


OUTAGES, LIMITS = pattern(Kind.OUTAGE), pattern(Kind.LIMIT)


def the_complaint(text: str) -> str:
    """Return the error in Slurm's message, without the command's name in front; empty if there is no message.

    If a limit was violated, it follows in brackets. `complaint.sh` does the same for sbatch.
    """
    lines = [line.strip() for line in text.splitlines()]
    bare = [_BEFORE.sub("", line) for line in lines]
    if found := [error[1] for line in lines if (error := _ERROR.fullmatch(line))]:
        names = [line for line in bare if _LIMIT_NAME.fullmatch(line)]
        return f"{found[-1]} ({names[-1]})" if names and found[-1].startswith(POLICY) else found[-1]
    return next((line for line in reversed(bare) if line and not line.startswith("Try ")), "")


def kind_of(text: str) -> Kind:
    """Return what this message means for the request."""
    complaint = the_complaint(text)
    if re.search(OUTAGES, complaint):
        return Kind.OUTAGE
    return Kind.LIMIT if re.search(LIMITS, complaint) else Kind.FINAL


def is_outage(text: str) -> bool:
    """Return whether this message means that Slurm is down. Otherwise Slurm refused the request."""
    return kind_of(text) is Kind.OUTAGE


def is_of_one_account(limit: str) -> bool:
    """Return whether the limit in a message applies to a single account, so that other accounts do not share it."""
    return re.search(r"PerUser|\(AssocMax", limit) is not None
