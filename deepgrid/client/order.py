"""A customer's order: a workflow, the credits to lock, and the terms on which a cluster may run it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsIndex

from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.chain.batches import Request
from deepgrid.chain.node.values import LONGEST_NAME_BYTES, check_label_count, coded_name
from deepgrid.client.job_values import LAST_JOB, Credits, Duration, job_number, seconds_of, wei_of
from deepgrid.client.workflow import Workflow
from deepgrid.errors import InputError
from deepgrid.lifecycle.feature_labels import FEATURES
from deepgrid.lifecycle.job import Affinity, JobDefinition, Label, Prefer, Provider, Wishes
from deepgrid.scheduling.explain import quote
from deepgrid.scheduling.fit import ORDERS, unmet

if TYPE_CHECKING:  # the language takes 0.4 s to load, which a client saves that submits nothing
    from deepgrid.workflow import Definition

Preference = Literal["balanced", "price", "start", "speed"]
"""What counts most when a cluster is chosen."""

ANY_PRICE = "any"  # as `max_price`: no ceiling
LEAST_WAIT_S = 600  # the contract's 5 minutes, and time for the request to be mined

_AFFINITY = re.compile(r"([^<>=!:]+)(==|<=|>=|<|>|!=|=|:in:)([^<>=!:]+)")
_OPERATORS = {"=": "==", ":in:": "in"}
_NO_LABEL = re.compile(r"[^=]*[<>!:]|[^=]*=\s*[=<>]")
_WITH_UNIT = re.compile(r"[0-9][0-9.]* ?[A-Za-z/%]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a cluster may run a job. Some depend on the moment of the request. `Terms.of` makes them.

    Attributes:
        uses: Labels that the cluster must have.
        affinity: Conditions on labels of the cluster.
        delegate_spending: Lets the grid top up the job from the customer's allowance.
        min_minutes: Minutes that the credits must buy.
        max_rate_wei: Maximum price per minute; 0 for any, None for the highest price that the grid quotes.
        give_up_after_s: Seconds from the request on, at least LEAST_WAIT_S; 0 for never.
        prefer: What counts most when a cluster is chosen.
        after: Number of the job that must finish first; 0 for none.
        after_any: Whether that job may end in any way.
    """

    uses: tuple[Label, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    delegate_spending: bool = False
    min_minutes: int = 1
    max_rate_wei: int | None = None
    give_up_after_s: int = 0
    prefer: Prefer = Prefer.BALANCED
    after: int = 0
    after_any: bool = False

    @classmethod
    def of(
        cls,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        delegate_spending: bool = False,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
    ) -> Terms:
        """Return the terms as programs write them: see `AsyncGrid.submit`. Raises InputError."""
        minutes, seconds = seconds_of(min_time), seconds_of(give_up_after)
        if minutes is not None and not 0 < minutes <= MAX_LIMIT_MINUTES * 60:
            raise InputError("The minimum time of a job is 1 minute to 365 days.", next_step="Write it like 2h or 90m.")
        if seconds is not None and seconds < LEAST_WAIT_S:
            raise InputError(
                "A job is given up after 10 minutes at the earliest.", next_step="Write a time like 1h or 2d."
            )
        if prefer not in [one.name.lower() for one in Prefer]:
            raise InputError(f"{prefer!r} is no preference.", next_step="Write balanced, price, start or speed.")
        uses, affinities = ((one,) if isinstance(one, str) else one for one in (uses, affinities))
        check_label_count(len(uses) + len(affinities))
        return cls(
            tuple(map(parse_use, uses)),
            tuple(map(parse_affinity, affinities)),
            delegate_spending,
            min_minutes=1 if minutes is None else max(1, -int(-minutes // 60)),
            max_rate_wei=_max_rate(max_price),
            give_up_after_s=int(seconds or 0),
            prefer=Prefer[prefer.upper()],
        )

    def wishes(self, now: int) -> Wishes:
        """Return the wishes that the contract keeps for a job that is requested at the unix time `now`."""
        give_up_at = now + self.give_up_after_s if self.give_up_after_s else 0
        return Wishes(self.max_rate_wei or 0, self.min_minutes, give_up_at, self.prefer, self.after, self.after_any)

    def following(self, after: SupportsIndex | None, after_any: SupportsIndex | None) -> Terms:
        """Return the terms of a job that waits for another one: until it finishes, or ends in any way.

        Raises InputError if both are given, one is no number of a job, or a job with retries is given: its number may
        change.
        """
        if after is not None and after_any is not None:
            raise InputError("A job waits for one other job.", next_step="Give after or after_any, not both.")
        first = after if after is not None else after_any
        if first is None:
            return self
        number = job_number(first, 1, LAST_JOB)
        if getattr(first, "retries_left", 0):
            raise InputError(
                f"Job {number} has retries left: they are other jobs, and the next job would wait for job {number}.",
                next_step="Submit the first job without retries, or the next one when the first is over.",
            )
        return replace(self, after=number, after_any=after_any is not None)


def _max_rate(max_price: Credits | None) -> int | None:
    if max_price is None:
        return None
    if max_price == ANY_PRICE:
        return 0
    rate = wei_of(max_price)
    if not rate:
        raise InputError("The highest price is 0.", next_step=f"Write credits per minute, or {ANY_PRICE}.")
    return rate


@dataclass(frozen=True)
class Order:
    """A job that a customer asks for, and its price limit. Made by `read_order`.

    Attributes:
        job: The definition, with its modules resolved.
        name: Name of the job, at most 32 bytes.
        locked_wei: Wei of credits that the contract locks. What the job does not use is returned.
        terms: On which terms a cluster may run the job.
        warnings: Advice on the workflow file, one line each.
        needs: Conditions on labels that follow from what the definition uses, such as containers.
    """

    job: Definition = field(repr=False)
    name: str
    locked_wei: int
    terms: Terms = field(default_factory=Terms)
    warnings: tuple[str, ...] = ()
    needs: tuple[Affinity, ...] = ()

    @property
    def uses(self) -> tuple[Label, ...]:
        """Labels that the cluster must have."""
        return (*self.terms.uses, *(Label(need.key, need.value) for need in self.needs if need.op == "=="))

    @property
    def affinity(self) -> tuple[Affinity, ...]:
        """Conditions on labels of the cluster."""
        return (*self.terms.affinity, *(need for need in self.needs if need.op != "=="))

    @property
    def delegate_spending(self) -> bool:
        """Whether the grid may top up the job from the customer's allowance."""
        return self.terms.delegate_spending

    def definition(self, definition_hash: str) -> JobDefinition:
        """Return the part of the definition that goes on chain.

        Args:
            definition_hash: Hash of the stored definition, as returned by `CustomerSession.store`.
        """
        resources = self.job.resources
        return JobDefinition(
            gpus=resources.gpus,
            mem_per_cpu_mb=resources.mem_per_cpu,
            cpus_per_task=resources.cpus_per_task,
            ntasks=resources.tasks,
            definition_hash=definition_hash,
            uses=self.uses,
            affinity=self.affinity,
        )

    def request(self, definition_hash: str, now: int) -> Request:
        """Return the request to the contract at the unix time `now`. The price ceiling must be known."""
        definition, wishes = self.definition(definition_hash), self.terms.wishes(now)
        return Request(definition, self.locked_wei, self.name, self.delegate_spending, wishes)

    def with_ceiling(self, rate_wei: int) -> Order:
        """Return the order with a maximum price per minute; 0 for any."""
        return replace(self, terms=replace(self.terms, max_rate_wei=rate_wei))

    def with_least(self, minutes: int) -> Order:
        """Return the order with the minutes that its credits must buy."""
        return replace(self, terms=replace(self.terms, min_minutes=minutes))

    def unknown_features(self, providers: Iterable[Provider]) -> str:
        """Return what the job needs and no cluster of the grid has, in words; empty if each need is met somewhere."""
        labels = [provider.labels for provider in providers if provider.approved and not provider.banned]
        lacking = [need.key for need in self.needs if all(unmet(of_one, (), (need,)) for of_one in labels)]
        return " and ".join(FEATURES[key] for key in lacking)

    def fitting(self, providers: Iterable[Provider]) -> list[tuple[Provider, int]]:
        """Return the clusters with the hardware and labels for the order, and their prices in wei per minute."""
        wanted = self.uses, self.affinity, self.job.resources.gpus
        return [one for one in quote(self.definition(""), providers).offers if not unmet(one[0].labels, *wanted)]

    def dearest_rate(self, providers: Iterable[Provider]) -> int:
        """Return the highest price per minute, in wei, of the clusters that can take the order now; 0 if none can."""
        rates, least = (rate for _, rate in self.fitting(providers)), self.terms.min_minutes
        return max((rate for rate in rates if affordable_minutes(self.locked_wei, rate) >= least), default=0)


def read_order(
    file: Path,
    locked_wei: int,
    *,
    name: str | None = None,
    uses: Sequence[str] = (),
    affinities: Sequence[str] = (),
    delegate_spending: bool = False,
    ignore_unknown_fields: bool = False,
) -> Order:
    """Read a workflow file and fetch its modules.

    Args:
        file: The workflow file.
        locked_wei: Wei of credits to lock (1 credit = 10**18 wei).
        name: Name of the job, at most 32 bytes. The default is the name of the file.
        uses: Labels that the cluster must have, such as `os=linux`.
        affinities: Conditions on labels of the cluster, such as `mem>=4000`.
        delegate_spending: Let the grid top up the job from the customer's allowance.
        ignore_unknown_fields: Warn of fields that workflow files do not have, instead of refusing them.

    Returns:
        The order, for `CustomerSession.check`, `store` and `request`.

    Raises:
        InputError: The file or an argument is wrong. Faults of the file are one line each.

    Example:
        order = read_order(Path("job.yaml"), 100 * 10**18, uses=["os=linux"])
    """
    from deepgrid.modules import load

    loaded = load(file, ignore_unknown_fields=ignore_unknown_fields)
    workflow = Workflow(loaded.model, file.stem, loaded.warnings)
    return order_of(workflow, locked_wei, name, Terms.of(uses, affinities, delegate_spending))


def order_of(workflow: Workflow, locked_wei: int, name: str | None, terms: Terms) -> Order:
    """Return the order of a workflow. The workflow's own name is cut to 32 bytes.

    Labels that the terms name are the customer's choice: nothing is added about them. Raises InputError for a longer
    `name`, and for too many labels.
    """
    from deepgrid.workflow.needs import needs_of

    if name is None:
        name = workflow.name.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore")
    coded_name(name)
    named = {label.key for label in terms.uses} | {condition.key for condition in terms.affinity}
    needs = tuple(need for need in needs_of(workflow.definition) if need.key not in named)
    check_label_count(len(terms.uses) + len(terms.affinity) + len(needs))
    return Order(workflow.definition, name, locked_wei, terms, workflow.validate(), needs)


def parse_use(text: str) -> Label:
    """Return the label in a text such as `os=linux`. Raises InputError."""
    key, equals, value = text.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise InputError(f"{text!r} is not a label that a cluster may have.", next_step="Write it like os=linux.")
    if _NO_LABEL.match(text):
        raise InputError(
            f"{text!r} is a condition on a label, not a label.", next_step="Give it as an affinity, or write os=linux."
        )
    return Label(key.strip(), value.strip())


def parse_affinity(text: str) -> Affinity:
    """Return the condition in a text such as `mem>=4000`. Raises InputError.

    The operator is one of < <= = == >= > != :in:. Labels have no units, so an order needs a bare number.
    """
    match = _AFFINITY.fullmatch(text)
    if match is None or not (match[1].strip() and match[3].strip()):
        raise InputError(
            f"{text!r} is not a condition on a label.",
            next_step="Write it like mem>=4000 or gpu:in:nvidia, with one of < <= = == >= > != :in:.",
        )
    key, op, value = match[1].strip(), _OPERATORS.get(match[2], match[2]), match[3].strip()
    if op in ORDERS and _WITH_UNIT.fullmatch(value):
        from deepgrid.workflow.models.fields import megabytes_in

        megabytes = megabytes_in(value)
        raise InputError(
            f"{text!r} compares with {value}, but labels are numbers without a unit.",
            next_step=f"Memory is in MB: write {key}{op}{megabytes}." if megabytes else "Write the number only.",
        )
    return Affinity(key, op, value)
