"""HTML of the client's values: text of other parties stays text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.client.cluster_offers import Cluster, Clusters
from deepgrid.client.display.html import clusters_html, job_html, jobs_html, wallet_html, watch_html
from deepgrid.client.job_values import Bill
from deepgrid.client.quotes import Misfit, Offer, Quote
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider
from deepgrid.lifecycle.states import JobStatus

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
OTHER = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BILL = Bill(Decimal(2), 3, Decimal(6), Decimal(5), Decimal(1), Decimal("94.000000000000000001"), Decimal(100))
HOSTILE = "<script>alert(1)</script>\u202e\x1b[2J\"'><img src=http://evil.example onerror=x>&lt;"
Page = Callable[[str], str]


@dataclass(frozen=True)
class Shown:
    """A job with the same text in every field that other parties write."""

    text: str
    id: int = 7
    status: JobStatus = JobStatus.PENDING
    provider: str | None = ADDRESS
    rate: Decimal | None = Decimal("0.5")
    locked: Decimal = Decimal(100)
    over: bool = True
    bill: Bill = BILL
    submitted: datetime | None = AT
    started: datetime | None = None
    ended: datetime | None = AT

    @property
    def name(self) -> str:
        return self.text

    cluster = waits_for = outcome = name

    @property
    def parameters(self) -> dict[str, object]:
        return {"RATE": self.text}


def cluster(name: str, address: str = ADDRESS) -> Cluster:
    return Cluster(
        Provider(
            address, Hardware((1,), (4,), (8000,)), Prices(10**18, 10**18, 10**15), (Label("name", name),), True, False
        )
    )


def quote(text: str) -> Quote:
    offers = (Offer(text, ADDRESS, Decimal(1), Decimal(60)),)
    return Quote(offers, (Misfit(text, OTHER, text),), 60, Decimal(100), 12, AT)


PAGES: list[Page] = [
    lambda text: job_html(Shown(text)),
    lambda text: jobs_html([Shown(text)], text),
    lambda text: watch_html(Shown(text), [text, text]),
    lambda text: Clusters([cluster(text)])._repr_html_(),
    lambda text: quote(text)._repr_html_(),
]


class Reader(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(str(page))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("page", PAGES)
@given(text=st.text(min_size=1) | st.sampled_from([HOSTILE, "<", "'", '"', "&#60;", "</td>", "<!--", "{}", "%s"]))
def test_no_text_makes_a_tag_or_steers(page: Page, text: str) -> None:
    found = Reader(page(text))
    assert found.tags == Reader(page("x")).tags
    assert not {unicodedata.category(c) for c in page(text)} & {"Cf", "Cs", "Zl", "Zp"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", page(text))


@pytest.mark.parametrize("page", PAGES)
def test_it_has_no_script_no_address_and_no_colour_of_its_own(page: Page) -> None:
    text = page("x")
    assert "http" not in text
    assert "url(" not in text
    assert not re.search(r"<(script|style|a|img|link|iframe)\b|\bon\w+=|\b(src|href)=", text)
    assert set(re.findall(r"(?<![-\w])color:([^;\"]+)", text)) == {"inherit"}
    assert "tabular-nums" in text


def test_hostile_text_is_shown() -> None:
    text = Reader(job_html(Shown(HOSTILE))).text
    assert "<script>alert(1)</script>[U+202E][U+001B][2J" in text


def test_clusters_of_one_name_are_told_apart() -> None:
    page = clusters_html([cluster("alpha"), cluster("alpha", OTHER)])
    assert "0x529084…169EE7" in page
    assert "0x8617E3…38070D" in page
    assert f'title="{OTHER}"' in page
    unnamed = Cluster(Provider(ADDRESS, Hardware((1,), (4,), (8000,)), Prices(1, 1, 1), (), True, False))
    assert Reader(clusters_html([unnamed])).text.count("0x529084…169EE7") == 1


def test_amounts_are_exact_and_sums_do_not_round() -> None:
    assert "94.000000000000000001" in job_html(Shown("x"))
    big = Bill(Decimal(2), 3, Decimal("9999999999.000000000000000001"), Decimal(5), Decimal(1), Decimal(0), Decimal(1))
    assert "29999999997.000000000000000003 credits" in jobs_html([Shown("x", bill=big)] * 3)
    assert "0.5" in wallet_html(ADDRESS, Decimal("0.5"), Decimal(0), Decimal(1))
    assert Reader(wallet_html(ADDRESS)).text == f"Wallet {ADDRESS}"


def test_long_tables_and_texts_are_cut() -> None:
    page = jobs_html([Shown("x", id=number) for number in range(80)])
    assert "and 30 more" in page
    assert page.count("<tr>") == 51
    assert "80 pending" in page
    assert len(job_html(Shown("a" * 100_000))) < 10_000
