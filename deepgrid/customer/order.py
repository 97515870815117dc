"""What a customer orders: a workflow file, the credits to lock, and the clusters that may run it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deepgrid.chain.node.values import LONGEST_NAME_BYTES, check_label_count, coded_name
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import NO_WISHES, Affinity, JobDefinition, Label, Wishes

if TYPE_CHECKING:  # the language takes 0.4 s to load, which a client saves that submits nothing
    from deepgrid import workflow

_AFFINITY = re.compile(r"([^<>=!:]+)(==|<=|>=|<|>|!=|=|:in:)([^<>=!:]+)")
_OPERATORS = {"=": "==", ":in:": "in"}


@dataclass(frozen=True)
class Order:
    """A job that a customer asks for, and its price limit. Made by `read_order`.

    Attributes:
        job: The definition, with its modules resolved.
        name: Name of the job, at most 32 bytes.
        locked_wei: Wei of credits that the contract locks. What the job does not use is returned.
        uses: Labels that the cluster must have.
        affinity: Conditions on labels of the cluster.
        delegate_spending: Lets the grid top up the job from the customer's allowance.
        warnings: Advice on the workflow file, one line each.
        wishes: Conditions on the choice of a cluster, which the contract keeps.
    """

    job: workflow.Definition = field(repr=False)
    name: str
    locked_wei: int
    uses: tuple[Label, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    delegate_spending: bool = False
    warnings: tuple[str, ...] = ()
    wishes: Wishes = NO_WISHES

    def definition(self, definition_hash: str) -> JobDefinition:
        """The part of the definition that goes on chain.

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
    from deepgrid import modules

    loaded = modules.load(file, ignore_unknown_fields=ignore_unknown_fields)
    return order_of(
        loaded.model, locked_wei, name=file.stem if name is None else name, cut_name=name is None, uses=uses,
        affinities=affinities, delegate_spending=delegate_spending, warnings=loaded.warnings,
    )  # fmt: skip


def order_of(
    job: workflow.Definition,
    locked_wei: int,
    *,
    name: str,
    cut_name: bool = False,
    uses: Sequence[str] = (),
    affinities: Sequence[str] = (),
    delegate_spending: bool = False,
    warnings: tuple[str, ...] = (),
) -> Order:
    """The order of a definition whose modules are resolved. Arguments are those of `read_order`.

    With `cut_name`, a name of more than 32 bytes is cut instead of refused. Raises InputError.
    """
    check_label_count(len(uses) + len(affinities))
    if cut_name:
        name = name.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore")
    coded_name(name)
    return Order(
        job=job,
        name=name,
        locked_wei=locked_wei,
        uses=tuple(parse_use(text) for text in uses),
        affinity=tuple(parse_affinity(text) for text in affinities),
        delegate_spending=delegate_spending,
        warnings=warnings,
    )


def parse_use(text: str) -> Label:
    """The label in a text such as `os=linux`. Raises InputError."""
    key, equals, value = text.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise InputError(f"{text!r} is not a label that a cluster may have.", next_step="Write it like os=linux.")
    return Label(key.strip(), value.strip())


def parse_affinity(text: str) -> Affinity:
    """The condition in a text such as `mem>=4000`. Raises InputError.

    The operator is one of < <= = == >= > != :in:.
    """
    match = _AFFINITY.fullmatch(text)
    if match is None or not (match[1].strip() and match[3].strip()):
        raise InputError(
            f"{text!r} is not a condition on a label.",
            next_step="Write it like mem>=4000 or gpu:in:nvidia, with one of < <= = == >= > != :in:.",
        )
    return Affinity(match[1].strip(), _OPERATORS.get(match[2], match[2]), match[3].strip())
