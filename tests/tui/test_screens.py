"""Each screen, in each state, as text and as the pictures of the documentation. A recorded grid answers.

`python -m tests.tui.record` makes the expected files again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.form import Field
from deepgrid.tui.screens.frame import Plain
from deepgrid.tui.widgets.text_pane import TextPane
from tests.client.replay import Replay
from tests.tui.pictures import PAGE, PICTURE_FOLDER, picture_of
from tests.tui.support import until
from tests.tui.walks import PICTURES, SCREENS, WALKS, Visit, visiting

ALL = ("jobs", "job", "log", "submit", "clusters", "top-up", "transfer", "allowance")
STATES = ("", "-empty", "-loading", "-error")
NO_SUCH_STATE = {"top-up-loading"}  # the job is there before its form opens
CUT = re.compile(r"[^\s~]~(?=\s|$)|…")
OUTSIDE = re.compile(r"\w+:|//|@import|url\((?!#)")


@pytest.mark.parametrize("walk", WALKS)
async def test_screens_are_as_expected_and_nothing_is_cut(
    walk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = WALKS[walk]
    async with Replay.of(plan.recording) as grid, visiting(grid, plan, tmp_path) as visit:
        async for screen in plan.walk(visit):
            await becomes(visit, (SCREENS / f"{screen}.txt").read_text(), screen)
            assert not [*cuts(visit.app)], screen
            if screen in PICTURES:
                picture = (PICTURE_FOLDER / f"{screen}.svg").read_text()
                await until(visit.pilot, lambda expected=picture: picture_of(visit.app) == expected, f"{screen}.svg")  # type: ignore[misc]
    assert not grid.unknown, "Record the grid again"


async def becomes(visit: Visit, expected: str, screen: str) -> None:
    """Wait until the screen is the expected one."""
    await until(visit.pilot, lambda: visit.text == expected, f"{screen} should be:\n{expected}\nbut is:")


def cuts(app: GridApp) -> Iterator[str]:
    """Yield what is cut off: titles, keys, labels, hints, and the meaning of a form."""
    screen = app.screen
    for line in screen.query("#head, #keys").results(Plain):
        if cell_len(words := str(line.content)) > line.size.width:
            yield words
    for field in screen.query(Field):
        hint = field.query_one(Input).placeholder
        label = field.query_one(".label").size.width
        if field.region.height != 1 or cell_len(hint) > field.input.size.width or cell_len(field.label) > label:
            yield field.label
    for pane in screen.query("#meaning").results(TextPane):
        if pane.row_count > pane.size.height:
            yield f"{pane.row_count - pane.size.height} rows of what the form means"
    yield from CUT.findall("\n".join(strip.text for strip in screen._compositor.render_strips()))


def test_every_screen_has_its_four_states() -> None:
    files = {file.stem for file in SCREENS.glob("*.txt")}
    assert {name + state for name in ALL for state in STATES} - files == NO_SUCH_STATE


def test_pictures_load_nothing_and_are_on_the_page() -> None:
    assert {file.stem for file in PICTURE_FOLDER.glob("*.svg")} == set(PICTURES)
    page = PAGE.read_text()
    for name in PICTURES:
        assert f"](terminal/{name}.svg)" in page
        picture = (PICTURE_FOLDER / f"{name}.svg").read_text()
        drawing = re.sub(r">[^<]*<|\sxmlns=\"[^\"]*\"", "><", picture.partition("</style>")[2])
        values = re.findall(r"=\"([^\"]*)\"", drawing)
        assert not [value for value in values if OUTSIDE.search(value)]
        assert not re.search(r"@|url\(|//", picture.partition("</style>")[0].replace("http://www.w3.org/2000/svg", ""))
