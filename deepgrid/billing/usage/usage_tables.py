"""The tables of a usage report, as text cells. The page, the command line and JSON show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.billing.period import format_time
from deepgrid.billing.usage.job_uses import NO_CLUSTER, End
from deepgrid.billing.usage.sums import Sums
from deepgrid.billing.usage.usage_figures import Usage, UsageReport, Waits

MOST_ROWS = 20  # of customers, clusters and failed jobs; the files have all
LONGEST_TEXT = 120  # of a name or an error that a stranger wrote
RESOURCES = {"CPUs": "cpus", "memory": "mem_mb", "GPUs": "gpus"}


@dataclass(frozen=True)
class Table:
    """A table. A heading that begins with `>` aligns its column right, as in `dps`. Cells may hold strangers' text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def message(report: UsageReport) -> str:
    """Return the report in one sentence."""
    now, totals = report.now, report.now.totals
    jobs = f"{totals.jobs} {'job' if totals.jobs == 1 else 'jobs'}"
    busy = ", ".join(f"{busy_share(now, one)} of the {name}" for name, one in RESOURCES.items() if _offers(now, one))
    begin, end = (format_time(at).removesuffix(" 00:00:00") for at in (now.span.since, now.span.until))
    earned = f"From {begin} to {end}, {jobs} earned {format_credits(totals.paid_wei)} credits"
    most = next(iter(now.customers.items()), None)  # they are ranked
    paid = f"; {most[0]} paid most: {format_credits(most[1].cost_wei)} credits" if most else ""
    return f"{earned}{paid}; in use: {busy}." if busy else f"{earned}{paid}."


def tables(report: UsageReport) -> list[Table]:
    """Return all tables of the report."""
    return [_summary(report), _ends(report), _customers(report), _clusters(report), _failures(report)]


def remarks(report: UsageReport) -> list[str]:
    """Return what a reader must know of the figures."""
    found = [
        f"Period: {_period(report.now)} UTC. Before: {_period(report.before)} UTC. Amounts are credits.",
        "Bills count when they are settled, time in use when it passes, waits when they end. CPUs, memory and GPUs are"
        " shares of the offer.",
    ]
    for provider in sorted(report.offers.assumed):
        name = report.offers.name_of(provider)
        found.append(f"Only a later offer of {_short(name)} ({provider}) is known: it counts for the whole period.")
    return found


def as_json(report: UsageReport) -> dict[str, Any]:
    """Return the figures as JSON values: amounts as texts of wei, times in unix seconds."""
    return {
        "name": report.name,
        "provider": report.provider,
        "period": _usage_json(report.now, report),
        "before": _usage_json(report.before, report),
        "assumed_offers": sorted(report.offers.assumed),
    }


def busy_share(figures: Usage, resource: str) -> str:
    """Return the share of the offered resource that jobs used."""
    used, offered = figures.totals.used_s, figures.totals.offered_s
    return percent(getattr(used, resource), getattr(offered, resource))


def percent(part: int, whole: int) -> str:
    """`part` of `whole` as `12.5 %`, rounded half up; a dash for a whole of 0."""
    if whole == 0:
        return "-"
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10} %"


def change(now: int, before: int) -> str:
    """Return the change as `+12.5 %`; `new` from 0, empty if both are 0."""
    if before == 0:
        return "new" if now else ""
    return f"{'-' if now < before else '+'}{percent(abs(now - before), before)}"


def duration(seconds: int | None) -> str:
    """`45 s`, `12 min 5 s`, `3 h 5 min`, `2 d 4 h`; a dash for None."""
    if seconds is None:
        return "-"
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{seconds} s"


def _summary(report: UsageReport) -> Table:
    now, before = report.now, report.before
    rows = [_count("jobs settled", now, before, lambda one: one.totals.jobs)]
    for name, field in (("earned", "paid_wei"), ("cut of the platform", "cut_wei"), ("refunded", "refunded_wei")):
        is_now, was = getattr(now.totals, field), getattr(before.totals, field)
        rows.append([name, format_credits(is_now), format_credits(was), change(is_now, was)])
    rows.append(_count("minutes billed", now, before, lambda one: one.totals.billed_minutes))
    rows.append(_count("customers", now, before, lambda one: len(one.customers)))
    rows += [[f"{name} in use", busy_share(now, one), busy_share(before, one), ""] for name, one in RESOURCES.items()]
    rows += _waits("wait for a claim", now.to_claim, before.to_claim)
    rows += _waits("wait for the start", now.to_start, before.to_start)
    rows.append(_count("jobs open at the end", now, before, lambda one: one.open_jobs))
    rows.append(_count("claims given back", now, before, lambda one: one.given_back))
    return Table("Summary", ["figure", ">period", ">before", ">change"], rows)


def _count(name: str, now: Usage, before: Usage, value: Callable[[Usage], int]) -> list[str]:
    is_now, was = value(now), value(before)
    return [name, str(is_now), str(was), change(is_now, was)]


def _waits(name: str, now: Waits, before: Waits) -> list[list[str]]:
    figures = [("median", now.median_s, before.median_s), ("9 of 10 within", now.most_s, before.most_s)]
    figures.append(("longest", now.longest_s, before.longest_s))
    return [[f"{name}, {what}", duration(is_now), duration(was), ""] for what, is_now, was in figures]


def _ends(report: UsageReport) -> Table:
    now, before, jobs = report.now.ends, report.before.ends, report.now.totals.jobs
    rows = []
    for kind in sorted({*now, *before}, key=lambda one: (list(End).index(one[0]), one[1])):
        words = ": ".join(part for part in kind if part)
        compared = [str(before[kind]), change(now[kind], before[kind])]
        rows.append([words, str(now[kind]), percent(now[kind], jobs), *compared])
    return Table("Ends by cause", ["end", ">jobs", ">share", ">before", ">change"], rows)


def _customers(report: UsageReport) -> Table:
    now, before = report.now.customers, report.before.customers
    rows = []
    for who, sums in _first(now.items()):
        was = before.get(who, Sums())
        compared = [format_credits(was.cost_wei), change(sums.cost_wei, was.cost_wei)]
        more = [hours(sums.used_s.cpus), format_credits(sums.refunded_wei)]
        rows.append([who, str(sums.jobs), format_credits(sums.cost_wei), *compared, *more])
    columns = ["customer", ">jobs", ">paid", ">before", ">change", ">CPU hours", ">refunded"]
    return Table(_title("Customers", len(now)), columns, rows)


def _clusters(report: UsageReport) -> Table:
    """Return the table of clusters. The address is last: Prefect's page is as wide as the other columns."""
    now, before = report.now.clusters, report.before.clusters
    rows = []
    for who, sums in _first(now.items()):
        was = before.get(who, Sums())
        money = [format_credits(wei) for wei in (sums.paid_wei, was.paid_wei)]
        money += [change(sums.paid_wei, was.paid_wei), format_credits(sums.cut_wei), format_credits(sums.refunded_wei)]
        busy = [percent(getattr(sums.used_s, one), getattr(sums.offered_s, one)) for one in RESOURCES.values()]
        rows.append([_cluster(report, who), str(sums.jobs), *money, *busy, who or "-"])
    money_columns = [">earned", ">before", ">change", ">cut", ">refunded"]
    columns = ["cluster", ">jobs", *money_columns, *(f">{name}" for name in RESOURCES), "address"]
    return Table(_title("Clusters", len(now)), columns, rows)


def _failures(report: UsageReport) -> Table:
    failed = [one for one in report.now.jobs if one.end is not None and one.end.is_failure]
    rows = []
    for one in _first(reversed(failed)):
        how = [one.end or "", one.exit, _short(one.error)]
        rows.append([str(one.job_id), _cluster(report, one.cluster), *how, one.customer])
    columns = [">job", "cluster", "end", "exit", "error", "customer"]
    return Table(_title("Failed jobs", len(failed), "newest"), columns, rows)


def hours(seconds: int) -> str:
    """Return seconds as hours with one decimal, rounded half up."""
    tenths = (seconds + 180) // 360
    return f"{tenths // 10}.{tenths % 10}"


def _first(items: Iterable[Any]) -> list[Any]:
    return [one for one, _ in zip(items, range(MOST_ROWS), strict=False)]


def _title(what: str, count: int, which: str = "first") -> str:
    return f"{what}: the {which} {MOST_ROWS} of {count}" if count > MOST_ROWS else what


def _cluster(report: UsageReport, address: str) -> str:
    return "none" if address == NO_CLUSTER else _short(report.offers.name_of(address))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _offers(figures: Usage, resource: str) -> bool:
    return bool(getattr(figures.totals.offered_s, resource))


def _period(figures: Usage) -> str:
    return f"{format_time(figures.span.since)} to {format_time(figures.span.until)}"


def _usage_json(figures: Usage, report: UsageReport) -> dict[str, Any]:
    return {
        "since": figures.span.since,
        "until": figures.span.until,
        "totals": _sums_json(figures.totals),
        "customers": [{"address": who, **_sums_json(sums)} for who, sums in figures.customers.items()],
        "clusters": [
            {"address": who or None, "name": report.offers.name_of(who) if who else None, **_sums_json(sums)}
            for who, sums in figures.clusters.items()
        ],
        "ends": [{"end": end, "cause": cause or None, "jobs": count} for (end, cause), count in figures.ends.items()],
        "open_jobs": figures.open_jobs,
        "given_back": figures.given_back,
        "wait_for_claim": asdict(figures.to_claim),
        "wait_for_start": asdict(figures.to_start),
    }


def _sums_json(sums: Sums) -> Mapping[str, Any]:
    seconds = {"used": sums.used_s, "offered": sums.offered_s}
    return {
        "jobs": sums.jobs,
        "billed_minutes": sums.billed_minutes,
        "earned_wei": str(sums.paid_wei),
        "cut_wei": str(sums.cut_wei),
        "refunded_wei": str(sums.refunded_wei),
        **{f"{what}_seconds": asdict(one) for what, one in seconds.items()},
    }
