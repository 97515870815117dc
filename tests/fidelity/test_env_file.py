"""What steps write to DEEPSQUARE_ENV that no later step can get."""

from __future__ import annotations

import resource
import shutil
import subprocess

import pytest

from tests.fidelity.conftest import RealSite
from tests.sbatch.bucket import Bucket, with_s5cmd
from tests.sbatch.support import Bench, job, lines, run

LEFT_OUT = "deepgrid: DEEPSQUARE_ENV: "


def cpu_s() -> float:
    """Return the CPU time of all children that have ended. On a busy machine the wall clock says little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


@pytest.mark.situation(
    "variables",
    "a line of 400,000 letters in `DEEPSQUARE_ENV`, as of `base64 -w0`; 300 lines that are no `KEY=value`",
    "the log names 20 lines at once, and counts the others",
)
def test_a_long_line_and_many_lines_take_no_time(bench: Bench) -> None:
    steps = """
    - run: {command: 'printf "%0400000d\\n%0400000d=1\\n" 1 1 | tr 0 a >>$DEEPSQUARE_ENV; echo B=2 >>$DEEPSQUARE_ENV'}
    - run: {command: 'echo $B; seq 300 >>$DEEPSQUARE_ENV'}
    - run: {command: 'echo $B'}
    """
    no_variable = "is left out, because it is not KEY=value with the name of a variable"
    named = [LEFT_OUT + f"line {number} {no_variable}" for number in (1, 2, *range(4, 22))]
    before = cpu_s()
    outcome = bench.run(job(steps), LC_ALL="C.UTF-8")
    assert cpu_s() - before < 10  # it took minutes
    counted = LEFT_OUT + "282 more lines or variables are left out"
    assert outcome.output.splitlines() == [*named[:2], "2", *named[2:], counted, "2"]


@pytest.mark.deep
@pytest.mark.situation(
    "variables", "a value of 200,000 lines in `DEEPSQUARE_ENV`", "the log names it at once; later steps run without it"
)
def test_a_value_of_many_lines_takes_no_time(bench: Bench) -> None:
    steps = """
    - run: {command: '{ echo "A<<END"; seq 200000; echo END; echo B=2; } >>$DEEPSQUARE_ENV'}
    - run: {command: 'echo "[$A] $B"'}
    """
    told = LEFT_OUT + "A is left out, because it has more than 120000 bytes, which cannot be passed on"
    before = cpu_s()
    assert lines(bench, steps) == (0, [told, "[] 2"])
    assert cpu_s() - before < 15


@pytest.mark.situation("variables", "a large value behind `PATH=/nowhere`", "later steps get both")
def test_a_large_value_is_measured_without_programs(bench: Bench) -> None:
    steps = """
    - run: {command: 'printf "PATH=/nowhere\\nBIG=%020000d\\n" 1 >>$DEEPSQUARE_ENV'}
    - run: {command: 'echo ${#BIG}'}
    """
    status, found = lines(bench, steps)
    assert (status, [one for one in found if "/bin/srun" not in one]) == (0, ["20000"])


@pytest.mark.deep  # making the locale takes 1 s
@pytest.mark.skipif(not shutil.which("localedef"), reason="needs localedef")
@pytest.mark.situation(
    "variables",
    "`é=1` in `DEEPSQUARE_ENV`, with a bash before 5.0 and a locale other than C",
    "the log names the line; later steps run",
)
def test_a_name_outside_ascii_is_no_name(bench: Bench) -> None:
    subprocess.run(["localedef", "-f", "UTF-8", "-i", "en_US", bench.root / "en_US.UTF-8"], check=True)
    old = bench.root / "old"
    old.write_text("shopt -u globasciiranges\n")  # as bash was
    steps = "- run: {command: 'echo é=1 >>$DEEPSQUARE_ENV'}\n- run: {command: 'echo later'}"
    outcome = bench.run(job(steps), LOCPATH=str(bench.root), LC_ALL="en_US.UTF-8", BASH_ENV=str(old))
    told = LEFT_OUT + "line 1 is left out, because it is not KEY=value with the name of a variable: é=..."
    assert (outcome.status, outcome.output.splitlines()) == (0, [told, "later"])


@pytest.mark.situation(
    "variables",
    "a last line without a line end, alongside the job's own helpers (`continuousOutputSync`, a virtual network)",
    "the next step begins a new line",
)
def test_a_last_line_without_end_beside_a_helper_of_the_job(bench: Bench, bucket: Bucket) -> None:
    with_s5cmd(bench)
    head = {"output": bucket.at("/out"), "continuousOutputSync": True}
    write = "printf {0}=1 >>$DEEPSQUARE_ENV; echo {0} >>$DEEPSQUARE_OUTPUT/x"
    outcome = run(bench, head, write.format("A"), write.format("B"), 'echo "[$A] [$B]"')
    assert outcome.status == 0
    assert "[1] [1]" in outcome.output.splitlines()
