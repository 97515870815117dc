"""HTML of jobs, quotes, clusters and wallets, for notebooks.

Strangers choose names, labels and remarks. They are text here, never markup; characters that steer the reader are
shown as marks. The HTML has no scripts, no links and no colours of its own, so it fits light and dark themes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from markupsafe import Markup

from deepgrid.client.job_values import Parameters, credits_of, wei_of
from deepgrid.plain_text import mark_controls

if TYPE_CHECKING:
    from deepgrid.client.cluster_offers import Cluster
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.quotes import Quote

MOST_ROWS = 50
LONGEST_TEXT = 120
MB_PER_GB = 1000

_TABLE = "border-collapse:collapse;font-size:90%;font-variant-numeric:tabular-nums;color:inherit;background:none"
_CELL = "padding:0.1em 0.7em;border-bottom:1px solid currentColor;white-space:normal;text-align:"
_PRE = "max-height:20em;overflow:auto;font-size:85%;color:inherit;background:none;white-space:pre-wrap"

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")  # the only sequences that a log line keeps

Value = Markup | str | int | Decimal | None
Cells = tuple[Value, ...]


def job_html(job: AsyncJob) -> str:
    """Return a job: its state, where it is, when what happened, and its price or bill."""
    bill = job.bill if job.over else None
    facts: list[tuple[str, Value]] = [
        ("waits for", job.waits_for),
        ("outcome", job.outcome),
        ("cluster", _cluster(job.cluster, job.provider)),
        ("parameters", _parameters(job.parameters)),
        ("submitted", _time(job.submitted)),
        ("started", _time(job.started)),
        ("ended", _time(job.ended)),
        ("credits per minute", job.rate),
        ("billed minutes", None if bill is None else bill.minutes),
        ("cost in credits", None if bill is None else bill.cost),
        ("refund in credits", None if bill is None else bill.refund),
        ("locked credits", job.locked),
    ]
    title = Markup("Job {}: {}, {}").format(job.id, _text(job.name), job.status.words)
    return _facts(title, facts)


def jobs_html(jobs: Sequence[AsyncJob], title: str = "") -> str:
    """Return a table of jobs, with the number of jobs in each state and their cost."""
    states = Counter(job.status.words for job in jobs)
    cost = credits_of(sum(wei_of(job.bill.cost) for job in jobs if job.over))
    counted = ", ".join(f"{count} {words}" for words, count in states.items())
    heading = ": ".join(part for part in (title, counted or "no jobs") if part)
    head = ("job", "name", "parameters", "state", "cluster", "cost")
    return _table(f"{heading}; cost {cost:f} credits", head, map(_job_cells, jobs[:MOST_ROWS])) + _more(len(jobs))


def _job_cells(job: AsyncJob) -> Cells:
    cluster, cost = _cluster(job.cluster, job.provider), job.bill.cost if job.over else None
    return job.id, job.name, _parameters(job.parameters), job.status.words, cluster, cost


def summary_html(jobs: int, states: Mapping[str, int], cost: Decimal, refunds: Decimal, locked: Decimal) -> str:
    money = [("cost in credits", cost), ("refunds in credits", refunds), ("locked credits", locked)]
    return _facts(Markup("{} jobs").format(jobs), [*states.items(), *money])


def progress_html(over: int, unfinished: int, total: int) -> str:
    """Return a bar of the jobs that are over, with the number of those that did not finish."""
    words = f"{over} of {total} jobs are over" + (f", {unfinished} did not finish" if unfinished else "")
    return Markup('<progress max="{}" value="{}"></progress> {}').format(total, over, words)


def quote_html(quote: Quote) -> str:
    """Return a quote: the offers, the clusters that cannot run the job, and the credits to lock."""
    offers = _table(
        f"Quote for {quote.minutes} minutes: lock {quote.needed:f} credits (block {quote.block}, {_time(quote.at)})",
        ("cluster", "credits per minute", "cost in credits"),
        [(_cluster(offer.cluster, offer.address), offer.rate, offer.cost) for offer in quote.offers[:MOST_ROWS]],
    )
    if not quote.misfits:
        return offers + _more(len(quote.offers))
    misfits = [(_cluster(misfit.cluster, misfit.address), misfit.why) for misfit in quote.misfits[:MOST_ROWS]]
    others = _table("Clusters that cannot run it", ("cluster", "why"), misfits)
    return offers + _more(len(quote.offers)) + others + _more(len(quote.misfits))


def clusters_html(clusters: Sequence[Cluster]) -> str:
    hardware, prices = ("nodes", "CPUs", "GB", "GPUs"), ("credits per CPU minute", "per GB minute", "per GPU minute")
    rows = map(_cluster_cells, clusters[:MOST_ROWS])
    return _table(f"{len(clusters)} clusters", ("cluster", *hardware, *prices, "state"), rows) + _more(len(clusters))


def _cluster_cells(one: Cluster) -> Cells:
    hardware = one.nodes, one.cpus, Decimal(one.memory_mb) / MB_PER_GB, one.gpus
    state = "banned" if one.banned else "approved" if one.approved else "waits for approval"
    return _cluster(one.name, one.address), *hardware, one.cpu_price, one.memory_price, one.gpu_price, state


def wallet_html(
    address: str, credits: Decimal | None = None, allowance: Decimal | None = None, gas: Decimal | None = None
) -> str:
    """Return a wallet: its address, and the balances that are known."""
    balances = [("credits", credits), ("allowance in credits", allowance), ("gas", gas)]
    return _facts(Markup("Wallet {}").format(address), balances)


def watch_html(job: AsyncJob, lines: Iterable[str]) -> str:
    """Return a job with the last lines of its output."""
    output = "\n".join(mark_controls(_COLOUR.sub("", line)) for line in lines)
    return job_html(job) + (Markup('<pre style="{}">{}</pre>').format(_PRE, output) if output else "")


# -- parts ---------------------------------------------------------------------------------------


def _text(text: str) -> Markup:
    """Return untrusted text: shortened, with marks, and isolated from the direction of the text around it."""
    short = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    return Markup("<bdi>{}</bdi>").format(mark_controls(short))


def _cluster(name: str, address: str | None) -> Markup:
    """Return a cluster's name with its address, because names may be equal. Empty without a cluster."""
    if address is None:
        return Markup("")
    short = f"{address[:8]}…{address[-6:]}"
    if name == address:
        return Markup('<code title="{}">{}</code>').format(address, short)
    return Markup('{} <code title="{}">{}</code>').format(_text(name), address, short)


def _parameters(parameters: Parameters | None) -> str:
    if isinstance(parameters, tuple):
        return "; ".join(_parameters(one) for one in parameters)
    return ", ".join(f"{name}={value}" for name, value in (parameters or {}).items())


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _cell(value: Value) -> Markup:
    match value:
        case Markup():
            side, shown = "left", value
        case str():
            side, shown = "left", _text(value)
        case None:
            side, shown = "left", Markup("")
        case _:
            side, shown = "right", Markup(f"{value:f}" if isinstance(value, Decimal) else value)
    return Markup('<td style="{}">{}</td>').format(_CELL + side, shown)


def _row(cells: Iterable[Value]) -> Markup:
    return Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, cells)))


def _table(title: str, head: Sequence[str], rows: Iterable[Iterable[Value]]) -> Markup:
    names = Markup("").join(Markup('<th style="{}">{}</th>').format(_CELL + "left", name) for name in head)
    return Markup(
        '<table style="{}"><caption style="text-align:left;color:inherit">{}</caption><tr>{}</tr>{}</table>'
    ).format(_TABLE, _text(title), names, Markup("").join(map(_row, rows)))


def _facts(title: Markup, facts: Iterable[tuple[str, Value]]) -> Markup:
    rows = [(name, value) for name, value in facts if value is not None and value != ""]
    return Markup('<table style="{}"><caption style="text-align:left;color:inherit">{}</caption>{}</table>').format(
        _TABLE, title, Markup("").join(map(_row, rows))
    )


def _more(count: int) -> Markup:
    return Markup("<p>and {} more</p>").format(count - MOST_ROWS) if count > MOST_ROWS else Markup("")
