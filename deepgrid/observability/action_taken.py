"""What a maintenance flow did to one thing, and why: a line of its log, and a row of its table. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits

NAMED = 5  # jobs in a sentence


@dataclass(frozen=True, slots=True)
class ActionTaken:
    """One action. `verb` and `noun` begin its sentence, such as `took back` and `job`. Empty fields do not apply.

    `cost_wei` is what the customer pays by it. `count` is more than one for things that have no name.
    """

    verb: str
    noun: str
    reason: str = ""
    job_id: int | None = None
    slurm_id: int | None = None
    account: str = ""
    customer: str = ""
    cluster: str = ""
    cost_wei: int | None = None
    count: int = 1

    @property
    def words(self) -> str:
        """The action in one line, such as `took back job: job=7 cluster=alpha: alpha did not claim it in time`."""
        named = " ".join(f"{name}={value}" for name, value in self._named().items())
        return ": ".join(part for part in (f"{self.verb} {self.noun}", named, self.reason) if part)

    def row(self) -> dict[str, object]:
        """Return the action as a row of a table."""
        return {"action": f"{self.verb} {self.noun}", **self._named(), "reason": self.reason}

    def _named(self) -> dict[str, object]:
        cost = "" if self.cost_wei is None else format_credits(self.cost_wei)
        count = self.count if self.count != 1 else ""
        named = {"job": self.job_id or "", "slurm_id": self.slurm_id or "", "account": self.account}
        named |= {"customer": self.customer, "cluster": self.cluster, "credits": cost, "count": count}
        return {name: value for name, value in named.items() if value != ""}


def summary(actions: Iterable[ActionTaken]) -> str:
    """Return one sentence with the counts, such as `Took back 2 jobs (7, 9) and left 1 job (8).`; empty without any."""
    groups: dict[tuple[str, str], list[ActionTaken]] = defaultdict(list)
    for one in actions:
        groups[one.verb, one.noun].append(one)
    parts = [_count_words(*kind, group) for kind, group in groups.items()]
    if not parts:
        return ""
    sentence = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"{sentence[0].upper()}{sentence[1:]}."


def _count_words(verb: str, noun: str, group: list[ActionTaken]) -> str:
    count = sum(one.count for one in group)
    ids = [str(job_id) for job_id in sorted(one.job_id for one in group if one.job_id is not None)]
    named = ", ".join([*ids[:NAMED], *["…"] * (len(ids) > NAMED)])
    return f"{verb} {count} {noun}{'' if count == 1 else 's'}" + (f" ({named})" if named else "")
