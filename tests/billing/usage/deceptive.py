"""Texts that strangers write to deceive the readers of a report, and what a reader of Markdown sees."""

from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt

from deepgrid.billing.usage.capacity import Offers
from deepgrid.billing.usage.usage_figures import UsageReport
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import visible
from tests.billing.histories import CREDIT, ME, Plan
from tests.billing.usage.reports import OFFERS, history, report_of

S = JobStatus
EVIL = [
    "[pay](https://evil.example)", "<img src=x onerror=alert(1)>", "a | b | c", "`code` ![x](y)", "www.evil.example",
    "https://evil.example", "x\n\n# The books agree", "\x1b[31mred", "ab\u202ecd\u200b", "=cmd|'/C calc'!A0",
    "@SUM(1+1)", "&lt;b&gt;", "$x^2$", "\\", "-", "ada@evil.example", "~~gone~~", "\ufeff=1+1", " =1+1", "\t=1+1",
]  # fmt: skip
MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": True})
OURS = {"h1", "h2", "p", "img", "table", "thead", "tbody", "tr", "th", "td", ""}


def evil_report(text: str) -> UsageReport:
    made = history(Plan(end=S.FAILED, ran_s=30, rate=CREDIT), Plan(end=S.CANCELLED))
    made.jobs[1] = replace(made.jobs[1], last_error=text, exit_status=768)
    offers = Offers(OFFERS.changes, {ME: text}, frozenset({ME}))
    return report_of(made, offers=offers)


def tags(text: str) -> set[str]:
    parsed = MARKDOWN.parse(text)
    inner = [token for one in parsed for token in one.children or ()]
    return {token.tag for token in (*parsed, *inner)}


def cells(text: str) -> list[str]:
    """Return the texts that a reader of the Markdown sees, one per cell or paragraph."""
    found = [one for one in MARKDOWN.parse(text) if one.type == "inline"]
    return ["".join(part.content for part in one.children or ()) for one in found]


def visible_of(text: str) -> str:
    return visible(text).strip()
