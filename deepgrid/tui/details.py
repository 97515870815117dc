"""Jobs and quotes in words: the cells of the table of jobs, the lines of a job's details and of a quote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from deepgrid.billing.expected import releasable_wei
from deepgrid.client.display.story import conditions, held_words, resources_words
from deepgrid.client.display.text import moment_utc
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import plain
from deepgrid.tui.widgets.table import Cell, Column
from deepgrid.tui.widgets.text_pane import Line, heading, pair, plain_line
from deepgrid.tui.words import NONE, amount, cluster_words, day_and_time, exact, fit, full_time, short_address, span

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.job_values import Remark, Step
    from deepgrid.client.quotes import Quote

OLD_QUOTE_S = 60.0

COLUMNS = (
    Column("id", 6, right=True),
    Column("name"),
    Column("state", 14),
    Column("cluster", 12),
    Column("time", 7, right=True),
    Column("cost", 9, right=True),
    Column("rate", 7, right=True, from_width=100),
    Column("deposit", 9, right=True, from_width=100),
    Column("submitted", 11, from_width=112),
    Column("asks for", 38, from_width=150),
)

STYLES = {
    JobStatus.RUNNING: Style(color="green"),
    JobStatus.FAILED: Style(color="red"),
    JobStatus.PANICKED: Style(color="red"),
    JobStatus.OUT_OF_CREDITS: Style(color="red"),
    JobStatus.PENDING: Style(color="yellow"),
    JobStatus.META_SCHEDULED: Style(color="yellow"),
    JobStatus.SCHEDULED: Style(color="cyan"),
}


def cells(job: AsyncJob, now_s: float) -> list[Cell]:
    state = Cell(state_words(job), STYLES.get(job.status, Style()))
    rate = NONE if job.rate is None else amount(job.rate)
    others = job.cluster or NONE, run_time(job, now_s), cost(job, now_s), rate, amount(job.locked)
    wide = day_and_time(job.submitted), resources_words(job.on_chain)
    return [Cell(str(job.id)), Cell(job.name), state, *map(Cell, others), *map(Cell, wide)]


def state_words(job: AsyncJob) -> str:
    """Return the state of a job in at most 14 letters."""
    return "cancelling" if job.on_chain.has_cancel_request and not job.over else job.status.words


def run_time(job: AsyncJob, now_s: float) -> str:
    """Return how long the job has run. After its end, return the billed minutes, because the chain has no seconds."""
    if job.started is None:
        return NONE
    return span(60 * (job.bill.minutes or 0) if job.ended else now_s - job.started.timestamp())


def cost(job: AsyncJob, now_s: float) -> str:
    """Return the cost of the job. A cost so far begins with `~`."""
    if job.over:
        return amount(job.bill.cost)
    if job.started is None or job.rate is None:
        return NONE
    minutes = max(1, -(-int(now_s - job.started.timestamp()) // 60))
    return f"~{amount(min(job.locked, job.rate * Decimal(minutes)))}"


def matches(job: AsyncJob, wanted: str, marks: str = "") -> bool:
    """Return whether each word of a filter is part of the job's id, name, state, cluster or `marks`."""
    text = f"{job.id} {job.name} {state_words(job)} {job.cluster} {marks}".lower()
    return all(word in text for word in wanted.lower().split())


def last_remark(job: AsyncJob, remarks: Sequence[Remark]) -> str:
    """Return the newest information on a job: how it ended, why it waits, or the last remark."""
    if job.over:
        return job.outcome or job.status.words
    if remarks and (job.status is JobStatus.PENDING or is_news(job, remarks[-1])):
        return f"{remarks[-1].kind}: {remarks[-1].text}"
    return job.waits_for or f"runs on {job.cluster}"


def is_news(job: AsyncJob, remark: Remark) -> bool:
    """Return whether a remark is about the current run of a job, and not about an earlier wait."""
    return job.status is JobStatus.RUNNING and job.started is not None and remark.at >= job.started


def why_not_cancel(job: AsyncJob, answer_minutes: int, fee_minutes: int, now_s: float) -> str:
    """Return why a job cannot be cancelled at this chain time; empty if it can.

    A request can be repeated once its answer is due if that returns credits, and once the rest can be returned.
    """
    known = job.on_chain
    if job.over:
        return "it is over"
    if not known.has_cancel_request:
        return ""
    answer_due = known.cancel_requested_at + 60 * answer_minutes
    if now_s < min(answer_due, known.held_until):
        return f"that was requested already; its cluster has until {moment_utc(answer_due)} to answer"
    if now_s >= known.held_until or releasable_wei(known, answer_minutes=answer_minutes, fee_minutes=fee_minutes):
        return ""
    return held_words(known)


def why_not_top_up(job: AsyncJob) -> str:
    """Return why a job cannot be topped up; empty if it can."""
    if job.over:
        return "it is over"
    if job.on_chain.has_cancel_request:
        return "its cancellation was requested"
    return "no cluster has claimed it" if job.status < JobStatus.SCHEDULED else ""


def cancelled_words(job: AsyncJob) -> str:
    """Return the effect of a cancellation in words."""
    if job.over:
        return f"Job {job.id} is cancelled."
    told = f"The cluster of job {job.id} was asked to stop it"
    return f"{told}. {held_words(job.on_chain)}." if job.on_chain.released_wei else f"{told}."


def facts(job: AsyncJob, now_s: float) -> list[Line]:
    lines = [
        pair("state", Text(state_words(job), STYLES.get(job.status, Style()))),
        pair("name", plain(job.name)),
        pair("cluster", cluster_words(job.cluster, job.provider)),
        pair("customer", short_address(job.customer)),
        pair("asks for", resources_words(job.on_chain)),
    ]
    if asked := conditions(job.on_chain):
        lines.append(pair("labels", plain("  ".join(asked))))
    lines += [
        pair("submitted", full_time(job.submitted)),
        pair("runs", run_time(job, now_s)),
        pair("deposit", f"{exact(job.locked)} credits"),
        pair("rate", NONE if job.rate is None else f"{exact(job.rate)} credits per minute"),
    ]
    if not job.over:
        lines.append(pair("cost", f"{cost(job, now_s)} credits" if job.started else NONE))
    return lines


def bill_lines(job: AsyncJob) -> Iterator[Line]:
    """Yield the bill of a job that is over."""
    if not job.over:
        return
    bill = job.bill
    yield plain_line("")
    yield heading("bill")
    minutes = "none" if bill.minutes is None else str(bill.minutes)
    yield pair("minutes", minutes)
    yield pair("cost", f"{exact(bill.cost)} credits")
    yield pair("provider", f"{exact(bill.to_provider)} credits")
    yield pair("platform", f"{exact(bill.platform_cut)} credits")
    yield pair("returned", f"{exact(bill.refund)} of {exact(bill.locked)} credits")


def life_lines(steps: Sequence[Step], remarks: Sequence[Remark]) -> Iterator[Line]:
    """Yield changes of state and remarks, in the order in which they happened."""
    yield plain_line("")
    yield heading("life")
    told = [(step.at, 0, step.status.words, step.words) for step in steps]
    told += [(remark.at, 1, f"  {remark.kind}", remark.text) for remark in remarks]
    for at, _, what, words in sorted(told, key=lambda entry: entry[:2]):
        yield plain_line(f"{day_and_time(at)}  {plain(what):<15} {plain(words)}", indent=29)


def quote_lines(quote: Quote, age_s: float) -> Iterator[Line]:
    """Yield the lines of a quote, dimmed if it is too old."""
    old = age_s > OLD_QUOTE_S
    style = "dim" if old else ""
    state = f"older than {OLD_QUOTE_S:.0f} s: a new one is asked for" if old else "prices are fixed at assignment"
    yield pair("quote", f"for {span(quote.minutes * 60)}, block {quote.block}; {state}", style)
    if quote.offers:
        yield pair("needed", f"{exact(quote.needed)} credits for that time at the highest price", style)
    else:
        yield plain_line("No cluster can run this job now:", "bold")
    for offer in quote.offers:
        price = f"{fit(amount(offer.rate), 8, right=True)} per minute {fit(amount(offer.cost), 9, right=True)} in all"
        yield plain_line(f"  {fit(cluster_words(offer.cluster, offer.address), 30)} {price}", style)
    for misfit in quote.misfits:
        words = f"  {cluster_words(misfit.cluster, misfit.address)}: {plain(misfit.why)}"
        yield plain_line(words, style or "dim", indent=4)
