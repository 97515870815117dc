"""The contents of a receipt. Amounts are texts of wei, times unix seconds, memory is MB.

Amounts are texts because they are larger than the numbers of JavaScript.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

MOST_ENTRIES = 100
MOST = 2**63

Wei = Annotated[str, StringConstraints(pattern=r"^(?:0|[1-9][0-9]{0,77})$")]
Hash = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{64}$")]
Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$")]
Count = Annotated[int, Field(ge=0, lt=MOST)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has control characters")
    return text


Word = Annotated[str, StringConstraints(max_length=256), AfterValidator(_printable)]
Line = Annotated[str, StringConstraints(max_length=1024), AfterValidator(_printable)]


class Part(BaseModel):
    """A part of a receipt. Every field has exactly its type, and there are no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Asked(Part):
    """What the customer asked for. `definition_hash` is the one on chain."""

    definition_hash: Word
    tasks: Count
    cpus_per_task: Count
    mem_per_cpu_mb: Count
    gpus: Count


class Place(Part):
    """Where the job ran."""

    cluster: Word
    partition: Word
    nodes: Line


class Times(Part):
    """When the job was submitted, claimed, reported running, and settled, by the chain's clock; 0 for never."""

    submitted_at: Count
    claimed_at: Count
    started_at: Count
    ended_at: Count


class Evidence(Part):
    """What Slurm says of the run. `run_s` are the seconds that count, without suspensions.

    `exit_status` is Slurm's wait status. `tres` is Slurm's text of the resources that the job held, followed by what
    it used of them (`used/cpu=12,used/mem=85M`); empty if its accounting does not say.
    """

    slurm_id: Count | None = None
    state: Word = ""
    started_at: Count | None = None
    ended_at: Count | None = None
    run_s: Count = 0
    exit_status: Count = 0
    tres: Line = ""


class Minutes(Part):
    """The minutes on the bill, those that the credits bought, and the rule that gives the minutes on the bill."""

    billed: Count
    bought: Count
    rule: Line


class Money(Part):
    """The bill. `locked_wei` is the deposit and all top-ups; it is cost and refund. The cost is paid and cut."""

    rate_wei_per_minute: Wei
    deposit_wei: Wei
    top_ups: Count
    top_ups_wei: Wei
    locked_wei: Wei
    cost_wei: Wei
    paid_wei: Wei
    cut_percent: Count
    cut_wei: Wei
    refunded_wei: Wei


class Entry(Part):
    """A transaction of the job's life, by the place of its log on chain. `wei` is what it moved."""

    what: Word
    at: Count
    block: Count
    log_index: Count
    transaction: Hash
    wei: Wei


class Contents(Part):
    """Everything that the provider signs. `transactions` has the newest top-ups only, if there are very many."""

    version: Annotated[int, Field(ge=1, le=1)]
    chain_id: Count
    meta_scheduler: Address
    job_id: Annotated[int, Field(ge=1, lt=MOST)]
    name: Word
    customer: Address
    provider: Address
    status: Word
    error: Line
    asked: Asked
    place: Place
    times: Times
    evidence: Evidence
    minutes: Minutes
    money: Money
    transactions: Annotated[list[Entry], Field(max_length=MOST_ENTRIES)]


class Receipt(Part):
    """A receipt as it is stored and sent: its contents, the hash of its evidence, and the provider's signature."""

    evidence_hash: Hash
    receipt: Contents
    signature: Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{130}$")]
