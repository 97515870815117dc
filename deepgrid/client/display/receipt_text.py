"""A receipt in words: titles with pairs of names and values. The text, the PDF and the terminal show the same."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.billing.credits import format_credits
from deepgrid.client.display.text import moment_utc, plural
from deepgrid.services.receipts import Contents, Entry

Section = tuple[str, list[tuple[str, str]]]


def receipt_sections(contents: Contents) -> Iterator[Section]:
    """Yield titles, each with names and values. Values may be strangers' texts without control characters."""
    yield from _request(contents)
    yield from _run(contents)
    yield "Bill", list(_bill(contents))
    yield "Transactions", [_transaction(one) for one in contents.transactions]


def receipt_text(contents: Contents) -> str:
    """Return the receipt as lines."""
    lines: list[str] = []
    for title, rows in receipt_sections(contents):
        width = max((len(name) for name, _ in rows), default=0)
        lines += ["", title, *(f"  {name:<{width}}  {value}" for name, value in rows)]
    return "\n".join(lines[1:]) + "\n"


def _request(contents: Contents) -> Iterator[Section]:
    asked = contents.asked
    yield (
        f"Receipt of job {contents.job_id}",
        [
            ("name", contents.name or "-"),
            ("customer", contents.customer),
            ("provider", contents.provider),
            ("grid", f"chain {contents.chain_id}, contract {contents.meta_scheduler}"),
            ("state", f"{contents.status}: {contents.error}" if contents.error else contents.status),
        ],
    )
    yield (
        "Asked for",
        [
            ("tasks", str(asked.tasks)),
            ("CPUs per task", str(asked.cpus_per_task)),
            ("memory per CPU", f"{asked.mem_per_cpu_mb} MB"),
            ("GPUs", str(asked.gpus)),
            ("definition", asked.definition_hash),
        ],
    )


def _run(contents: Contents) -> Iterator[Section]:
    place, times, ran = contents.place, contents.times, contents.evidence
    yield (
        "Where and when it ran",
        [
            ("cluster", place.cluster),
            ("partition", place.partition or "-"),
            ("nodes", place.nodes or "-"),
            ("submitted", _time(times.submitted_at)),
            ("claimed", _time(times.claimed_at)),
            ("started", _time(times.started_at)),
            ("settled", _time(times.ended_at)),
        ],
    )
    yield (
        "Evidence of Slurm",
        [
            ("Slurm job", str(ran.slurm_id or "-")),
            ("state", ran.state or "-"),
            ("start", _time(ran.started_at)),
            ("end", _time(ran.ended_at)),
            ("seconds that count", str(ran.run_s)),
            ("exit status", str(ran.exit_status)),
            ("resources", ran.tres or "-"),
        ],
    )


def _bill(contents: Contents) -> Iterator[tuple[str, str]]:
    money, minutes = contents.money, contents.minutes
    share = 100 - money.cut_percent
    yield "rate", f"{_credits(money.rate_wei_per_minute)} credits per minute"
    yield "minutes", f"{minutes.billed} of {minutes.bought} bought"
    yield "rule", minutes.rule
    yield "deposit", _credits(money.deposit_wei)
    in_words = f"{_credits(money.top_ups_wei)} in {plural(money.top_ups, 'transaction')}"
    yield "top-ups", in_words if money.top_ups else "none"
    yield "cost", _credits(money.cost_wei)
    yield f"to provider ({share} %)", _credits(money.paid_wei)
    yield f"platform cut ({money.cut_percent} %)", _credits(money.cut_wei)
    yield "refund", _credits(money.refunded_wei)


def _transaction(one: Entry) -> tuple[str, str]:
    amount = f", {_credits(one.wei)} credits" if one.wei != "0" else ""
    place = f"block {one.block}, log {one.log_index}"
    return one.what, f"{_time(one.at)}, {place}{amount}, {one.transaction}"


def _credits(wei: str) -> str:
    return format_credits(int(wei))


def _time(unix_s: int | None) -> str:
    return moment_utc(unix_s) if unix_s else "-"
