"""The plan of a sweep: its parameter sets, checked, as orders with hashes that follow from the sweep's key."""

from __future__ import annotations

import difflib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from deepgrid.client.engine.idempotency import IdempotencyKey
from deepgrid.client.job_values import Parameters
from deepgrid.client.quotes import check_reach
from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.client.workflow import variable_texts
from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.order import Order, Terms
    from deepgrid.client.session import CustomerSession
    from deepgrid.services.kept_messages import Mark
    from deepgrid.workflow import Definition

MOST_SETS = 100_000


@dataclass(eq=False)
class Entry:
    """One job of a sweep, from its plan to its end.

    Attributes:
        parameters: Its parameters.
        definition: Its definition.
        salt: Salt of the definition's hash.
        definition_hash: The hash, which finds the job on chain.
        occurrence: Number of earlier entries with an equal definition.
        attempt: Number of earlier attempts.
        at: Its place in the sweep, from 1.
        job: The job, once it was requested.
        unsubmitted: Why there will be no job.
        retries_left: How often it is retried after a failure that its program did not cause.
        dropped: Whether no job may be requested for it any more.
    """

    parameters: Parameters
    definition: Definition
    salt: bytes
    definition_hash: str
    occurrence: int
    attempt: int
    at: int
    job: AsyncJob | None = None
    unsubmitted: Unsubmitted | None = None
    retries_left: int = 0
    dropped: bool = False

    @property
    def over(self) -> bool:
        return self.unsubmitted is not None or (self.job is not None and self.job.over)

    @property
    def result(self) -> AsyncJob | Unsubmitted:
        """The result of the entry, which must be over."""
        result = self.unsubmitted or self.job
        assert result is not None
        return result


class Plan:
    """The order and the key of a sweep.

    Attributes:
        key: The key.
        named: Whether the caller chose the key. Then jobs may exist already.
        fingerprint: Represents the workflow in the journal.
    """

    def __init__(
        self, order: Order, pack_size: int, key: IdempotencyKey, *, named: bool, mark: Mark | None = None
    ) -> None:
        from deepgrid.workflow import canonical  # here, as below: the language takes 0.3 s to load

        self._order = order
        self._pack_size = pack_size
        self._mark = mark
        self._count = 0
        self.key = key
        self.named = named
        self.fingerprint = key.fingerprint(canonical(order.job) + b"\0%d" % pack_size)

    @property
    def sweep_id(self) -> str:
        """The id under which the services keep the sweep."""
        return self.key.id[:16]

    @property
    def terms(self) -> Terms:
        """The terms of all jobs."""
        return self._order.terms

    @property
    def credits_wei(self) -> int:
        """Wei of credits to lock for each job."""
        return self._order.locked_wei

    def entries(self, parameters: Iterable[Mapping[str, object]]) -> list[Entry]:
        """Return one entry per job. Every definition is checked.

        Raises InputError that names a faulty parameter set.
        """
        sets = list(islice(parameters, MOST_SETS + 1))
        if len(sets) > MOST_SETS:
            raise InputError(f"There are more than {MOST_SETS:,} parameter sets.", next_step="Split them.")
        if not sets:
            raise InputError("There are no parameter sets.")
        texts = [_texts(number, one) for number, one in enumerate(sets, 1)]
        self._warn_of_unused({name for one in texts for name in one})
        size = self._pack_size
        seen: Counter[bytes] = Counter()
        found = [self._entry(sets[at : at + size], texts[at : at + size], at, seen) for at in range(0, len(sets), size)]
        self._count = len(found)
        return found

    def _warn_of_unused(self, names: set[str]) -> None:
        """Warn of parameters that the workflow mentions nowhere: a mistyped one makes all jobs equal."""
        from deepgrid.workflow import canonical

        words = {word.decode() for word in re.findall(rb"[A-Za-z_][A-Za-z0-9_]*", canonical(self._order.job))}
        for name in sorted(names - words):
            near = difflib.get_close_matches(name, words, n=1, cutoff=0.7)
            hint = f" (did you mean {near[0]}?)" if near else ""
            warnings.warn(f"The workflow does not mention the parameter {name}{hint}.", stacklevel=2)

    def again(self, entry: Entry) -> Entry:
        """Return the next attempt of an entry, or the same attempt if the entry has no job."""
        from deepgrid.workflow import canonical, hash_definition

        attempt = entry.attempt + (entry.job is not None)
        salt = self.key.salt(entry.occurrence, attempt)
        definition_hash = hash_definition(salt, canonical(entry.definition))
        return Entry(entry.parameters, entry.definition, salt, definition_hash, entry.occurrence, attempt, entry.at)

    def repeat(self, entry: Entry) -> None:
        """Make an entry its own next attempt, without a job."""
        new = self.again(entry)
        entry.salt, entry.definition_hash, entry.attempt = new.salt, new.definition_hash, new.attempt
        entry.retries_left -= 1
        entry.job = None

    def order(self, entry: Entry) -> Order:
        """Return the order of an entry."""
        return replace(self._order, job=entry.definition)

    def mark(self, entry: Entry) -> Mark:
        """Return what the services keep about the job of an entry.

        Secret parameters are masked. Parameters that are too long are left out.
        """
        from deepgrid.services.kept_messages import MOST_PARAMETER_BYTES, Mark, SweepPlace
        from deepgrid.workflow.masking import MASK, is_secret_name

        sets = entry.parameters if isinstance(entry.parameters, tuple) else (entry.parameters,)
        texts = [{name: MASK if is_secret_name(name) else str(value) for name, value in one.items()} for one in sets]
        if sum(len(f"{name}{value}".encode()) for one in texts for name, value in one.items()) > MOST_PARAMETER_BYTES:
            texts = []
        place = SweepPlace(
            id=self.sweep_id, name=self._order.name, at=entry.at, of=self._count, parameters=texts[:1000]
        )
        mark = self._mark or Mark()
        return Mark(tags=mark.tags, note=mark.note, sweep=place)

    async def set_ceiling(self, session: CustomerSession) -> None:
        """Make the highest current price the ceiling of all jobs, unless the caller named a ceiling.

        Raises InputError if the credits of a job buy too few minutes at each cluster.
        """
        if self._order.terms.min_minutes > 1:
            check_reach(self._order, await session.chain.providers())
        self._order = await session.with_ceiling(self._order)

    def _entry(
        self, sets: Sequence[Mapping[str, object]], texts: Sequence[Mapping[str, str]], first: int, seen: Counter[bytes]
    ) -> Entry:
        from deepgrid.workflow import canonical, hash_definition, pack, with_variables

        try:
            packed = self._pack_size > 1
            definition = pack(self._order.job, texts) if packed else with_variables(self._order.job, texts[0])
            content = canonical(definition)
        except InputError as error:
            raise InputError(f"Parameter set {first + 1}: {error.message}", next_step=error.next_step) from None
        salt = self.key.salt(occurrence := seen[content])
        seen[content] += 1
        parameters = tuple(sets) if packed else sets[0]
        at = first // self._pack_size + 1
        return Entry(parameters, definition, salt, hash_definition(salt, content), occurrence, 0, at)


def _texts(number: int, parameters: object) -> dict[str, str]:
    """Return the parameters as values of environment variables."""
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise InputError(f"Parameter set {number} is not a mapping of names to values.")
    try:
        return variable_texts(parameters)
    except InputError as error:
        raise InputError(f"Parameter set {number}: {error.message}", next_step=error.next_step) from None
