"""What steps write to DEEPSQUARE_ENV that no later step can get."""

from __future__ import annotations

import pytest

from tests.fidelity.conftest import RealSite

LEFT_OUT = "deepgrid: DEEPSQUARE_ENV: "


@pytest.mark.long
@pytest.mark.situation(
    "variables",
    "200,000 bytes in one variable of `DEEPSQUARE_ENV`",
    "the log names it and the limit; `catch`, `finally` and later steps run without it",
)
@pytest.mark.situation(
    "variables",
    "many variables of `DEEPSQUARE_ENV` with more than 1 MB in all",
    "the log names those beyond the limit; later steps run without them",
)
@pytest.mark.situation(
    "variables",
    "lines of `DEEPSQUARE_ENV` that are not `KEY=value`, and an unclosed here-document",
    "the log names each line, without its value",
)
async def test_what_is_too_large_or_no_variable_is_left_out_and_named(site: RealSite) -> None:
    text = r"""
steps:
  - run:
      command: |
        printf 'SMALL=1\nBIG=%0200000d\nexport B=secret\nC = spaced\n\n# a comment\n' 1 >>"$DEEPSQUARE_ENV"
        printf 'D<<END\nline\n' >>"$DEEPSQUARE_ENV"
        exit 5
    catch: [{run: {command: 'echo caught $DEEPSQUARE_ERROR_CODE $SMALL ${#BIG}'}}]
    finally: [{run: {command: 'echo finally'}}]
  - run: {command: 'for i in 1 2 3 4 5 6 7 8 9 10 11; do printf "V$i=%099000d\n" 1; done >"$DEEPSQUARE_ENV"'}
  - run: {command: 'echo ${#V1} ${#V10} ${#V11}'}
"""
    status, lines = await site.run(text)
    no_variable = "is left out, because it is not KEY=value with the name of a variable"
    assert (status, lines) == (
        0,
        [
            LEFT_OUT + "BIG is left out, because it has 200000 bytes; at most 120000 can be passed on",
            LEFT_OUT + f"line 3 {no_variable}: export B=...",
            LEFT_OUT + f"line 4 {no_variable}: C =...",
            LEFT_OUT + "line 7 is left out with all that follows, because no line is END, which would end D",
            "caught 5 1 0",
            "finally",
            LEFT_OUT
            + "V11 is left out, because all variables have 1089000 bytes with it; at most 1000000 can be passed on",
            "99000 99000 0",
        ],
    )
