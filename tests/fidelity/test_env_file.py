"""What steps write to DEEPSQUARE_ENV that no later step can get."""

from __future__ import annotations

import pytest

from tests.fidelity.conftest import RealSite
from tests.sbatch.support import Bench, lines

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


@pytest.mark.situation(
    "variables",
    "`DEEPSQUARE_ENV` becomes a folder, a pipe, a file of 1 TiB, or a link to `/dev/zero`",
    "the log says so; no step waits for it or reads it; later steps begin with an empty file",
)
@pytest.mark.parametrize("make", ["mkdir $F", "mkfifo $F", "ln -s /dev/zero $F", "truncate -s 1T $F"])
def test_what_is_no_file_of_variables_is_emptied(bench: Bench, make: str) -> None:
    steps = f"""
    - run: {{command: 'F=$DEEPSQUARE_ENV; echo A=1 >>$F; rm $F; {make}'}}
    - run: {{command: 'echo "[$A]"; echo B=2 >>$DEEPSQUARE_ENV'}}
    - run: {{command: 'echo $B; rm $DEEPSQUARE_ENV'}}
    - run: {{command: 'echo "[$B]"; echo C=3 >>$DEEPSQUARE_ENV'}}
    - run: {{command: 'echo $C'}}
    """
    told = "deepgrid: DEEPSQUARE_ENV is not a readable file of at most 16777216 bytes; it is emptied"
    assert lines(bench, steps) == (0, [told, "[]", "2", "[]", "3"])


@pytest.mark.situation(
    "variables",
    "the same in a job with a launch",
    "as long as no launch runs in parallel, the next step begins a new line",
)
def test_a_last_line_without_end_before_and_beside_a_launch(bench: Bench) -> None:
    begun, go = bench.root / "begun", bench.root / "go"
    inner = (
        f"printf C=3 >>$DEEPSQUARE_ENV; touch {begun}; until [ -e {go} ]; do sleep 0.05; done; echo 4 >>$DEEPSQUARE_ENV"
    )
    steps = f"""
    - run: {{command: 'printf A=1 >>$DEEPSQUARE_ENV'}}
    - run: {{command: 'echo B=2 >>$DEEPSQUARE_ENV'}}
    - run: {{command: 'echo "$A $B"'}}
    - launch: {{handleName: beside, steps: [{{run: {{command: '{inner}'}}}}]}}
    - run: {{command: 'until [ -e {begun} ]; do sleep 0.05; done'}}
    - run: {{command: 'touch {go}'}}
    - run: {{command: 'echo $C'}}
      dependsOn: [beside]
    """
    status, found = lines(bench, steps)
    assert (status, found[0], found[-1]) == (0, "1 2", "34")


@pytest.mark.situation("variables", "a last line without a line end (`printf A=1`)", "the next step begins a new line")
@pytest.mark.situation("variables", "`PATH=/nowhere`", "later steps run with it; what they leave behind is ended")
def test_a_last_line_without_end_and_another_path(bench: Bench) -> None:
    steps = """
    - run: {command: 'printf A=1 >>$DEEPSQUARE_ENV'}
    - run: {command: 'echo PATH=/nowhere >>$DEEPSQUARE_ENV; echo $A'}
    - run: {command: 'echo "$A $PATH"; ls'}
      catch: [{run: {command: 'echo $DEEPSQUARE_ERROR_CODE'}}]
    """
    status, found = lines(bench, steps)
    assert (status, [one for one in found if "not found" not in one]) == (0, ["1", "1 /nowhere", "127"])
