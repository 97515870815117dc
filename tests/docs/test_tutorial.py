"""The tutorial, followed exactly on its own grid: each command works and prints the output on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import Reader

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    yield (reader := Reader(tmp_path))
    reader.type("./run down")


def test_every_command_prints_what_the_page_shows(reader: Reader) -> None:
    reader.follow("docs/tutorial/first-job.md")
