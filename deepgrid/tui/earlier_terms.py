"""The terms of an earlier job, which the form keeps when it submits the job again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from deepgrid.client.display.story import wishes
from deepgrid.client.job_values import credits_of, wei_of
from deepgrid.errors import InputError, NotFound
from deepgrid.tui.words import exact, span

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.order import Terms
    from deepgrid.client.quotes import Quote


@dataclass(frozen=True)
class EarlierTerms:
    """What a job keeps when it is submitted again, in addition to its file, labels and name.

    Attributes:
        job: The earlier job.
        terms: Its terms: its order of jobs only if no cluster had it.
    """

    job: AsyncJob
    terms: Terms

    @classmethod
    def of(cls, job: AsyncJob) -> EarlierTerms:
        """Return the terms of a job."""
        from deepgrid.client.repeat.job_files import terms_again

        return cls(job, terms_again(job.on_chain))

    def changed(self, after: str, minutes: int | None) -> EarlierTerms:
        """Return the terms with the typed number of the job before it, and the minutes that the credits follow from.

        An empty number is no job. Without minutes, the minimum time stays. Raises InputError.
        """
        terms = self.terms
        if after != str(terms.after or ""):
            if after and not (after.isascii() and after.isdigit() and len(after) < 10):
                raise InputError("The job before it is a number, such as 12.", next_step="Or leave the field empty.")
            terms = replace(terms, after=0, after_any=False).following(int(after) if after else None, None)
        if minutes is not None:
            terms = replace(terms, min_minutes=minutes)
        return replace(self, terms=terms)

    def words(self) -> str:
        """Return the terms in words; empty for none."""
        lasting = replace(self.terms, give_up_after_s=0)
        kept = wishes(replace(self.job.on_chain, wishes=lasting.wishes(0)))
        if self.terms.give_up_after_s:
            kept.append(f"given up after {span(self.terms.give_up_after_s)} without a cluster")
        if self.terms.delegate_spending:
            kept.append("topped up from your allowance")
        return "; ".join(kept)

    def check(self, quote: Quote, locked: Decimal) -> None:
        """Raise InputError if clusters can run it, but none on these terms."""
        ceiling = self.terms.max_rate_wei
        offers = [offer for offer in quote.offers if not ceiling or wei_of(offer.rate) <= ceiling]
        if quote.offers and not offers:
            raise InputError(
                f"Each cluster costs more than {exact(credits_of(ceiling or 0))} credits per minute, the highest price"
                f" of job {self.job.id}.",
                next_step=f"Use `dps job again {self.job.id} --max-price` with another price.",
            )
        minutes = self.terms.min_minutes
        if offers and all(offer.rate * minutes > locked for offer in offers):
            raise InputError(
                f"{exact(locked)} credits do not buy {minutes} minutes, the minimum time of the job.",
                next_step="Type more credits; or empty the credits, and type a time.",
            )

    async def options(self) -> Mapping[str, Any]:
        """Return the terms, tags and note as arguments of `AsyncGrid.submit`. Raises GridError."""
        terms = self.terms
        try:
            kept = await self.job.file()
            tags, note = kept.tags, kept.note
        except NotFound:  # then they are not kept either
            tags, note = {}, ""
        return {
            "delegate_spending": terms.delegate_spending,
            "min_time": timedelta(minutes=terms.min_minutes),
            "max_price": credits_of(terms.max_rate_wei) if terms.max_rate_wei else "any",
            "give_up_after": terms.give_up_after_s or None,
            "prefer": terms.prefer.name.lower(),
            "after_any" if terms.after_any else "after": terms.after or None,
            "tags": tags,
            "note": note,
        }
