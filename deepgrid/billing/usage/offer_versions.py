"""The offers of one provider over time, from the entries of the registry. Pure.

A proposal is in force from its approval on, while the provider is not removed or banned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from deepgrid.billing.usage.capacity import NOTHING, Capacity, OfferChange
from deepgrid.lifecycle.job import Provider


class Step(Enum):
    """What happened to a provider in the registry."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    REMOVED = "removed"
    BANNED = "banned"
    ADMITTED = "admitted again"


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A step of a provider, at a block's time in unix seconds. `proposed` is None if its transaction hides it."""

    provider: str
    step: Step
    at: int
    proposed: Capacity | None = None


@dataclass(frozen=True, slots=True)
class _Standing:
    approved: bool
    banned: bool
    offered: Capacity | None  # None: approved, and not known
    proposed: Capacity | None = None

    def after(self, entry: RegistryEntry) -> _Standing:
        match entry.step:
            case Step.PROPOSED:
                return replace(self, proposed=entry.proposed)
            case Step.APPROVED:
                return replace(self, approved=True, banned=False, offered=self.proposed)
            case Step.REMOVED:
                return replace(self, approved=False)
            case Step.BANNED:
                return replace(self, banned=True)
            case Step.ADMITTED:
                return replace(self, banned=False)

    @property
    def in_force(self) -> Capacity | None:
        return self.offered if self.approved and not self.banned else NOTHING


def needs_older(entries: Iterable[RegistryEntry], since: int) -> bool:
    """Return whether the entries of a provider do not say what it offered at `since`.

    Without an approval or a removal since then, the present offer says it.
    """
    own = list(entries)
    if not any(one.at >= since and one.step in (Step.APPROVED, Step.REMOVED) for one in own):
        return False
    was_proposed = False
    for one in own:
        if one.at >= since:
            break
        was_proposed |= one.step is Step.PROPOSED
        if one.step is Step.REMOVED or (one.step is Step.APPROVED and was_proposed):
            return False
    return True


def offer_changes(
    provider: str, entries: Sequence[RegistryEntry], present: Provider | None, since: int, *, is_whole: bool
) -> tuple[list[OfferChange], bool]:
    """Return the provider's offers from `since` on, and whether an unknown one was replaced by another.

    `is_whole`: no older entry is missing. `present` is the provider as it is registered now.
    """
    standing = _at_start(entries, present, since, is_whole=is_whole)
    for one in entries:
        if one.at < since:
            standing = standing.after(one)
    found = [(since, standing.in_force)]
    for one in entries:
        if one.at >= since:
            standing = standing.after(one)
            found.append((one.at, standing.in_force))
    now = Capacity.of_nodes(present.hardware) if present is not None and present.approved else NOTHING
    known = list(_fill_gaps(found, now))
    return [OfferChange(provider, at, offered) for at, offered in known], any(one is None for _, one in found)


def _at_start(entries: Sequence[RegistryEntry], present: Provider | None, since: int, *, is_whole: bool) -> _Standing:
    """Return the standing before the first of the entries."""
    bans = [one.step is Step.ADMITTED for one in entries if one.step in (Step.BANNED, Step.ADMITTED)]
    banned = bans[0] if bans else present is not None and present.banned
    if not any(one.step in (Step.APPROVED, Step.REMOVED) for one in entries):
        approved = present is not None and present.approved
        return _Standing(approved, banned, Capacity.of_nodes(present.hardware) if present and approved else None)
    is_known = is_whole or not needs_older(entries, since)
    return _Standing(approved=not is_known, banned=banned, offered=None)


def _fill_gaps(found: list[tuple[int, Capacity | None]], now: Capacity) -> Iterator[tuple[int, Capacity]]:
    """Yield the offers. An unknown offer is replaced by the next one that is known and not empty, or by `now`."""
    for place, (at, offered) in enumerate(found):
        later = (one for _, one in found[place:] if one is not None and one != NOTHING)
        yield at, next(later, now) if offered is None else offered
