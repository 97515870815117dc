"""A job that the terminal app submits again keeps its terms."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.client import AsyncJob, NotFound
from deepgrid.client.order import Terms
from deepgrid.client.quotes import Offer, Quote
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Prefer
from deepgrid.tui.earlier_terms import EarlierTerms

WISHED = Terms(
    delegate_spending=True,
    min_minutes=240,
    max_rate_wei=10**18 // 2,
    give_up_after_s=3600,
    prefer=Prefer.PRICE,
    after=12,
)


def kept(terms: Terms = WISHED, file: object = None) -> EarlierTerms:
    async def read() -> object:
        if isinstance(file, Exception):
            raise file
        return file or SimpleNamespace(tags={"project": "wing body"}, note="second mesh")

    return EarlierTerms(cast(AsyncJob, SimpleNamespace(id=13, file=read)), terms)


def quote(*rates: str) -> Quote:
    offers = tuple(Offer(f"c{at}", "0x", Decimal(rate), Decimal(0)) for at, rate in enumerate(rates))
    return cast(Quote, SimpleNamespace(offers=offers))


async def test_all_terms_are_arguments_of_a_submission() -> None:
    options: dict[str, Any] = dict(await kept().options())
    assert (options.pop("tags"), options.pop("note")) == ({"project": "wing body"}, "second mesh")
    terms = Terms.of(**{name: value for name, value in options.items() if not name.startswith("after")})
    assert terms.following(options.get("after"), options.get("after_any")) == WISHED


async def test_no_highest_price_and_any_end_of_the_job_before_stay() -> None:
    options = await kept(Terms(max_rate_wei=0, after=12, after_any=True), NotFound("gone")).options()
    assert (options["max_price"], options["after_any"], "after" in options) == ("any", 12, False)
    assert (options["tags"], options["note"]) == ({}, "")


def test_the_typed_number_replaces_the_job_before() -> None:
    terms = Terms(after=12, after_any=True)
    assert kept(terms).changed("12", None).terms == terms
    assert kept(terms).changed("14", None).terms == Terms(after=14)
    assert kept(terms).changed("", None).terms == Terms()
    for wrong in ("x", "-1", "0", "1.5", "1" * 10):
        with pytest.raises(InputError):
            kept(terms).changed(wrong, None)


def test_a_time_replaces_the_least_time() -> None:
    assert kept().changed("12", 60).terms.min_minutes == 60
    assert kept().changed("12", None).terms.min_minutes == 240


def test_credits_and_prices_that_no_cluster_takes_on_these_terms_are_refused() -> None:
    kept().check(quote("0.5", "0.75"), Decimal(120))
    kept().check(quote(), Decimal(1))  # no cluster now: the job waits
    with pytest.raises(InputError, match="59 credits do not buy 240 minutes"):
        kept().check(quote("0.5", "0.25"), Decimal(59))
    with pytest.raises(InputError, match="more than 0.5 credits per minute"):
        kept().check(quote("0.75"), Decimal(1000))
