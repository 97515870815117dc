"""Questions of an administrator, answered by both of Prefect's user interfaces within three clicks.

With DEEPGRID_PICTURES=docs/images/prefect in the environment, the last test also takes the pictures of the page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.grid.customer import Customer
from tests.grid.prefect_answers import QUESTIONS, WHY_FAILED, Desk, Version
from tests.grid.prefect_seed import failed_job, seeded
from tests.grid.prefect_ui import browser_page

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "prefect-ui.md"
VERSIONS: tuple[Version, ...] = ("v1", "v2")


@pytest.fixture
async def page(customer: Customer) -> AsyncIterator[Page]:
    async with browser_page(customer.grid.prefect) as page:
        yield page


async def test_both_user_interfaces_say_why_a_job_failed(customer: Customer, page: Page) -> None:
    facts = await failed_job(customer)
    for version in VERSIONS:
        await WHY_FAILED.ask(Desk(page, customer.grid.prefect.ui_url, version), facts)


def test_the_guide_has_every_question() -> None:
    guide = GUIDE.read_text()
    for question in QUESTIONS:
        assert f"| {question.asks} |" in guide


@pytest.mark.deep
async def test_both_user_interfaces_answer_twelve_questions(customer: Customer, page: Page) -> None:
    assert len(QUESTIONS) == 12
    async with seeded(customer) as facts:
        for version in VERSIONS:
            desk = Desk(page, customer.grid.prefect.ui_url, version)
            for question in QUESTIONS:
                await question.ask(desk, facts)
