"""The web app's tests read the vectors that Python computes today."""

from __future__ import annotations

import pytest

from tests.web.vectors import ALL, FOLDER, content_of


@pytest.mark.parametrize("name", ALL)
def test_vectors_are_fresh(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == content_of(name), "run `python -m tests.web.vectors`"
