"""Conversion between the contracts' structs and the values of `deepgrid.lifecycle.job`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Affinity, Hardware, Job, JobDefinition, Label, Prefer, Prices, Provider, Wishes
from deepgrid.lifecycle.states import JobStatus

ZERO_ADDRESS = "0x" + 40 * "0"
LONGEST_NAME_BYTES = 32
MOST_LABELS = 64  # of one job on chain, required labels and conditions together

WISH_BITS = (96, 32, 40, 8, 32, 1)  # of each field of Wishes on chain

# An operator is two ASCII bytes on chain, padded with zeros.
OPERATORS = {"<": b"<\0", "<=": b"<=", "==": b"==", ">=": b">=", ">": b">\0", "!=": b"!=", "in": b"in"}
_OPERATOR_OF = {coded: text for text, coded in OPERATORS.items()}


def coded_id(job_id: int) -> bytes:
    """Return a job's id as on chain. Raises InputError if it is not an id."""
    if not 0 <= job_id < 2**256:
        raise InputError(f"{job_id} is not the id of a job.")
    return job_id.to_bytes(32, "big")


def coded_name(name: str) -> bytes:
    """Return a job's name as on chain. Raises InputError if it has more than 32 bytes."""
    coded = name.encode()
    if len(coded) > LONGEST_NAME_BYTES:
        raise InputError(f"The job's name has {len(coded)} bytes; at most {LONGEST_NAME_BYTES} fit on chain.")
    return coded


def check_label_count(count: int) -> None:
    """Raise InputError if a job has more labels and conditions than the contract takes."""
    if count > MOST_LABELS:
        raise InputError(
            f"The job names {count} labels and conditions; at most {MOST_LABELS} fit on chain.",
            next_step="Use fewer --uses and --affinities.",
        )


def coded_definition(definition: JobDefinition) -> tuple[Any, ...]:
    """Return the struct JobDefinition. Raises InputError for an unknown operator or too many labels."""
    check_label_count(len(definition.uses) + len(definition.affinity))
    unknown = [condition.op for condition in definition.affinity if condition.op not in OPERATORS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an operator of affinities.", next_step=f"Use {' '.join(OPERATORS)}.")
    return (
        definition.gpus,
        definition.mem_per_cpu_mb,
        definition.cpus_per_task,
        definition.ntasks,
        definition.definition_hash,
        definition.storage_type,
        coded_labels(definition.uses),
        [((wanted.key, wanted.value), OPERATORS[wanted.op]) for wanted in definition.affinity],
    )


def coded_labels(labels: tuple[Label, ...]) -> list[tuple[str, str]]:
    return [(label.key, label.value) for label in labels]


def coded_hardware(hardware: Hardware) -> tuple[Any, ...]:
    return (hardware.nodes, list(hardware.gpus_per_node), list(hardware.cpus_per_node), list(hardware.mem_per_node_mb))


def coded_prices(prices: Prices) -> tuple[int, int, int]:
    return prices.gpu_wei_per_minute, prices.cpu_wei_per_minute, prices.mem_wei_per_mb_minute


def coded_wishes(wishes: Wishes) -> tuple[int, ...]:
    """Return the struct Wishes. All fields are 0 if the wishes ask for nothing.

    Raises InputError if a number does not fit.
    """
    least = wishes.min_minutes if wishes.min_minutes > 1 else 0  # every assignment buys a minute
    numbers = (wishes.max_rate_wei, least, wishes.give_up_at, int(wishes.prefer), wishes.after_job, wishes.after_any)
    names = ("highest price per minute", "least time", "time to give the job up", "preference", "job to wait for", "")
    for name, number, bits in zip(names, numbers, WISH_BITS, strict=True):
        if not 0 <= number < 2**bits:
            raise InputError(f"The {name} is out of range: {number}.")
    return numbers


def wishes_of(raw: dict[str, int]) -> Wishes:
    """Return wishes from their struct. An unknown preference counts as none."""
    prefer = Prefer(raw["prefer"]) if raw["prefer"] < len(Prefer) else Prefer.BALANCED
    least = max(1, raw["minMinutes"])
    return Wishes(raw["maxRatePerMinute"], least, raw["giveUpAt"], prefer, raw["afterJob"], bool(raw["afterAny"]))


def job_of(raw: dict[str, Any], terms: dict[str, Any], wishes: dict[str, int]) -> Job:
    """Return a Job from the structs Job, JobTerms and Wishes."""
    cost, time = raw["cost"], raw["time"]
    return Job(
        id=int.from_bytes(raw["jobId"], "big"),
        status=JobStatus(raw["status"]),
        customer=raw["customerAddr"],
        provider=_address_or_none(raw["providerAddr"]),
        definition=definition_of(raw["definition"]),
        name=raw["jobName"].rstrip(b"\0").decode(errors="replace"),
        locked_wei=cost["maxCost"] + terms["released"],  # maxCost is without what was released
        pending_top_up_wei=cost["pendingTopUp"],
        final_cost_wei=cost["finalCost"],
        submitted_at=time["submit"],
        assigned_at=terms["assignedAt"],
        claimed_at=terms["claimedAt"],
        started_at=terms["startedAt"],  # the contract's `start` is the end if the job never ran
        ended_at=time["end"],
        cancel_requested_at=time["cancelRequestTimestamp"],
        has_cancel_request=raw["hasCancelRequest"],
        rate_wei_per_minute=terms["ratePerMinute"],
        cut_percent=terms["cutPercent"],
        granted_minutes=terms["limitMinutes"],
        last_refuser=_address_or_none(terms["lastRefuser"]),
        delegate_spending=cost["delegateSpendingAuthority"],
        last_error=raw["lastError"],
        exit_status=raw["exitCode"],
        wishes=wishes_of(wishes),
        released_wei=terms["released"],
        fee_minutes=terms["feeMinutes"],
    )


def definition_of(raw: dict[str, Any]) -> JobDefinition:
    """Return a JobDefinition from its struct. An unknown operator counts as equality, as in other clients."""
    return JobDefinition(
        gpus=raw["gpus"],
        mem_per_cpu_mb=raw["memPerCpu"],
        cpus_per_task=raw["cpusPerTask"],
        ntasks=raw["ntasks"],
        definition_hash=raw["batchLocationHash"],
        storage_type=raw["storageType"],
        uses=labels_of(raw["uses"]),
        affinity=tuple(
            Affinity(item["label"]["key"], _OPERATOR_OF.get(item["op"], "=="), item["label"]["value"])
            for item in raw["affinity"]
        ),
    )


def labels_of(raw: list[dict[str, str]]) -> tuple[Label, ...]:
    return tuple(Label(label["key"], label["value"]) for label in raw)


def _address_or_none(address: str) -> str | None:
    return None if address == ZERO_ADDRESS else address


def provider_of(raw: dict[str, Any], *, approved: bool, waiting: bool) -> Provider:
    """Return a Provider from the struct Provider."""
    nodes, prices = raw["providerHardware"], raw["providerPrices"]
    hardware = Hardware(tuple(nodes["gpusPerNode"]), tuple(nodes["cpusPerNode"]), tuple(nodes["memPerNode"]))
    offered = Prices(prices["gpuPricePerMin"], prices["cpuPricePerMin"], prices["memPricePerMin"])
    return Provider(raw["addr"], hardware, offered, labels_of(raw["labels"]), approved, raw["isBanned"], waiting)


@dataclass(frozen=True, slots=True)
class Constants:
    """Settings that apply to new jobs: minimum deposit (wei), platform's cut (percent), times (minutes).

    `report_tolerance_minutes`: a report may exceed the possible time by this much before the contract emits
    BilledTooMuchEvent. The excess is never billed.
    """

    minimum_wei: int
    cut_percent: int
    claim_timeout_minutes: int
    cancellation_fee_minutes: int
    top_up_slice_minutes: int
    report_tolerance_minutes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The platform's cut in percent, and the announced next one.

    The next one can take effect from unix second `next_from` on. Both are 0 when no notice is open.
    """

    percent: int
    next_percent: int
    next_from: int


@dataclass(frozen=True, slots=True)
class Queues:
    """Number of jobs that wait for a provider: to be claimed, to be cancelled, to get more time."""

    claimable: int
    cancelling: int
    topped_up: int


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Numbers of jobs that a provider started, refused, panicked and let time out. Survives its removal."""

    started: int
    refused: int
    panicked: int
    timed_out: int

    @classmethod
    def of(cls, raw: Mapping[str, int]) -> Self:
        """From the struct ProviderRecord."""
        return cls(raw["started"], raw["refused"], raw["panicked"], raw["timedOut"])
