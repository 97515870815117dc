"""The page of the model: `docs/explanation/scale.md`, from the committed figures."""

from __future__ import annotations

from pathlib import Path

from tools.scale.bench_figures import PAGE, read_page
from tools.scale.scale_model import (
    BLOCK_GAS_PER_S,
    BUSY_SHARE,
    JOBS_PER_DAY,
    PEAK,
    PROVIDERS,
    Figures,
    first_to_break,
    parts,
    peak_per_s,
    regions,
)

SCALE_PAGE = PAGE.with_name("scale.md")
TEXT = Path(__file__).with_name("scale_text.md")


def scale_page() -> str:
    """Return the page."""
    figures = read_page(PAGE.read_text())
    tables = {
        "limits": _limits(figures),
        "sizes": _sizes(figures),
        "per job": _per_job(figures),
        "books": _books(figures),
    }
    text = TEXT.read_text()
    for name, table in tables.items():
        text = text.replace(f"<!-- {name} -->", table)
    assumed = {"PEAK": f"{PEAK:g}", "BUSY": f"{BUSY_SHARE:.0%}".replace("%", " %"), "GAS": f"{BLOCK_GAS_PER_S:,}"}
    for name, value in assumed.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _limits(figures: Figures) -> str:
    rows = [
        [one.name, one.unit, f"{one.limit_per_s:,.1f}", f"`{one.source.split(',')[0]}`: {one.source.split(', ')[1]}"]
        for one in parts(figures)
    ]
    return _table(["part", "unit", "jobs per second of one unit", "figure"], rows)


def _sizes(figures: Figures) -> str:
    known, rows = parts(figures), []
    for jobs in JOBS_PER_DAY:
        for providers in PROVIDERS:
            peak = peak_per_s(jobs)
            part, use = first_to_break(known, jobs, providers)
            counts = [f"{one.count(peak, providers):,}" for one in known]
            first = f"{part.name}: {use:.0%}".replace("%", " %")
            rows.append([f"{jobs:,}", f"{providers:,}", f"{peak:,.1f}", str(regions(known, jobs)), *counts, first])
    head = ["jobs per day", "providers", "peak, jobs per s", "regions", *(one.name for one in known)]
    return _table([*head, "breaks first, use of one unit"], rows)


def _per_job(figures: Figures) -> str:
    wanted = (
        ("capacity", "gas_per_job", "gas", 1.0),
        ("capacity", "call_data_bytes_per_job", "bytes of call data", 1.0),
        ("capacity", "nonzero_bytes_per_job", "of them not zero", 1.0),
        ("capacity", "compressed_bytes_per_job", "bytes of call data, compressed per block", 1.0),
        ("capacity", "transactions_per_job", "transactions", 1.0),
        ("capacity", "operator_cpu_ms_per_job", "CPU ms of the operator", 1.0),
        ("capacity", "services_cpu_ms_per_job", "CPU ms of the services, notices only", 1.0),
        ("capacity", "node_cpu_ms_per_job", "CPU ms of the chain's node", 1.0),
        ("capacity", "node_kb_per_job", "KB of memory of the development node", 1.0),
        ("reconcile", "seconds_1m", "CPU ms of the books", 0.001),
        ("supervisor", "cpu_ms", "CPU ms of a provider's side, with Prefect and Slurm", 1.0),
    )
    rows = [
        [what, f"{figures[bench, name].value * factor:,.4g}", *_per_day(figures[bench, name].value * factor)]
        for bench, name, what, factor in wanted
        if (bench, name) in figures
    ]
    return _table(["per job", "value", *(f"per day of {jobs:,} jobs" for jobs in JOBS_PER_DAY)], rows)


def _per_day(value: float) -> list[str]:
    return [f"{value * jobs:.2g}" for jobs in JOBS_PER_DAY]


def _books(figures: Figures) -> str:
    found = figures.get(("scheduling", "seconds_10k_x_1k"))
    if found is None:
        return ""
    return f"A round with 10,000 pending jobs and 1,000 clusters took {found.value:g} s of CPU time (`scheduling`)."
