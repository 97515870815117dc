"""A quote in words: what each cluster charges, why others cannot run the job, and how fresh that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepgrid.plain_text import plain
from deepgrid.tui.widgets.text_pane import Line, pair, plain_line
from deepgrid.tui.words import amount, cluster_words, exact, fit, span

if TYPE_CHECKING:
    from deepgrid.client.quotes import Quote

OLD_S = 60.0


def quote_lines(quote: Quote, age_s: float) -> Iterator[Line]:
    """The lines of a quote. One that is too old is dimmed."""
    old = age_s > OLD_S
    style = "dim" if old else ""
    state = f"older than {OLD_S:.0f} s: enter asks for a new one" if old else "prices are fixed at assignment"
    yield pair("quote", f"for {span(quote.minutes * 60)}, block {quote.block}; {state}", style)
    if quote.offers:
        yield pair("needed", f"{exact(quote.needed)} credits for that time at the dearest offer", style)
    else:
        yield plain_line("No cluster can run this job now:", "bold")
    for offer in quote.offers:
        price = f"{fit(amount(offer.rate), 8, right=True)} per minute {fit(amount(offer.cost), 9, right=True)} in all"
        yield plain_line(f"  {fit(cluster_words(offer.cluster, offer.address), 30)} {price}", style)
    for misfit in quote.misfits:
        words = f"  {cluster_words(misfit.cluster, misfit.address)}: {plain(misfit.why)}"
        yield plain_line(words, style or "dim", indent=4)
