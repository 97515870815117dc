"""A resolved module in a script has inputs, a private env file, outputs with a prefix, and its own scope."""

from __future__ import annotations

import pytest

from deepgrid.errors import InputError
from deepgrid.sbatch import StoragePaths, render
from tests.sbatch.support import Bench, job, lint

WRITES = r"""
    - name: use it
      module:
        source: example.org/a/b
        inputs: [{key: WHO, value: "Ada's $(id)"}, {key: NOTE, value: "two\nlines"}]
        outputs: [KEY, MANY, ABSENT]
        exportEnvAs: P
        steps:
          - run:
              command: |
                cat >>"$DEEPSQUARE_ENV" <<'EOF'
                KEY=first
                KEY2=not declared
                KEY=last $(id)
                MANY<<STOP
                END
                b=c
                STOP
                EOF
          - run: {command: ':'}
    - run: {command: ':'}
"""


def test_inputs_reach_the_module_and_outputs_reach_later_steps_with_a_prefix(bench: Bench) -> None:
    steps = "\n- run: {command: 'echo EARLIER=1 >>\"$DEEPSQUARE_ENV\"'}" + WRITES.replace("\n    ", "\n")
    lint(job(steps))
    outcome = bench.run(job(steps, env="[{key: WHO, value: the job}]"))
    assert outcome.status == 0, outcome.output
    first, second, after = (call.env for call in outcome.calls[1:])
    assert (first[b"WHO"], first[b"NOTE"], first[b"EARLIER"]) == (b"Ada's $(id)", b"two\nlines", b"1")
    assert (second[b"KEY"], second[b"MANY"]) == (b"last $(id)", b"END\nb=c")
    assert (after[b"P_KEY"], after[b"P_MANY"]) == (b"last $(id)", b"END\nb=c")
    assert (after[b"WHO"], after[b"EARLIER"]) == (b"the job", b"1")
    assert not {b"KEY", b"KEY2", b"P_KEY2", b"P_ABSENT", b"NOTE", b"MANY"} & after.keys()
    assert first[b"DEEPSQUARE_ENV"] != after[b"DEEPSQUARE_ENV"]
    assert bench.left_behind() == []


def test_without_a_prefix_a_module_writes_to_its_callers_env_file(bench: Bench) -> None:
    outcome = bench.run(job(WRITES.replace("        exportEnvAs: P\n", "")))
    assert outcome.calls[-1].env[b"KEY2"] == b"not declared"
    assert outcome.calls[0].env[b"DEEPSQUARE_ENV"] == outcome.calls[-1].env[b"DEEPSQUARE_ENV"]


@pytest.mark.parametrize("own_file", ["", "exportEnvAs: P, outputs: [A], "])
def test_what_a_step_of_a_module_writes_overrides_an_input(bench: Bench, own_file: str) -> None:
    write = "{run: {command: 'echo A=$NEXT >>\"$DEEPSQUARE_ENV\"', env: [{key: NEXT, value: VALUE}]}}"
    inner = "{module: {source: b, inputs: [{key: A, value: inner}], steps: [{run: {command: 'echo A is $A'}}, WRITE,"
    inner += " {run: {command: 'echo A is $A'}, if: $A == deep}]}}"
    steps = f"""
    - {write.replace("VALUE", "early")}
    - module:
        {{source: a, {own_file}inputs: [{{key: A, value: input}}], steps: [{{run: {{command: 'echo A is $A'}}}},
         {write.replace("VALUE", "new")}, {{run: {{command: 'echo A is $A'}}}},
         {inner.replace("WRITE", write.replace("VALUE", "deep"))}, {{run: {{command: 'echo A is $A; exit 3'}}}}]}}
      catch: [{{run: {{command: 'echo A is $A after $DEEPSQUARE_ERROR_CODE'}}}}]
    - run: {{command: 'echo A is $A'}}
    """
    definition = job(steps)
    lint(definition)
    outcome = bench.run(definition)
    after = "early" if own_file else "deep"
    told = ["input", "new", "inner", "deep", "deep", f"{after} after 3", after]
    assert (outcome.status, outcome.output.splitlines()) == (0, [f"A is {one}" for one in told])
    assert bench.left_behind() == []


def test_a_path_without_programs_keeps_no_step_from_its_variables(bench: Bench) -> None:
    steps = """
    - run: {command: 'printf "PATH=/nowhere\\nA=early" >>"$DEEPSQUARE_ENV"'}
    - module:
        source: a
        inputs: [{key: A, value: input}]
        steps: [{run: {command: 'echo A is $A; echo A=new >>"$DEEPSQUARE_ENV"'}}, {run: {command: 'echo A is $A'}}]
    """
    outcome = bench.run(job(steps))
    assert outcome.status == 0
    assert [line for line in outcome.output.splitlines() if line.startswith("A is")] == ["A is input", "A is new"]


def test_what_is_written_to_an_emptied_file_leaves_the_inputs_as_they_are(bench: Bench) -> None:
    steps = """
    - run: {command: 'echo LONG=before >>"$DEEPSQUARE_ENV"'}
    - module:
        source: a
        inputs: [{key: A, value: input}]
        steps:
          - run: {command: 'rm "$DEEPSQUARE_ENV"; mkdir "$DEEPSQUARE_ENV"'}
          - run: {command: 'echo $A ${LONG-none}'}
    """
    outcome = bench.run(job(steps))
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, "input none")


def test_modules_in_modules_and_loops_keep_their_variables_apart(bench: Bench) -> None:
    steps = r"""
    - for:
        parallel: true
        items: [a, b]
        steps:
          - module:
              source: outer
              inputs: [{key: LEVEL, value: outer}, {key: DEEP, value: kept}]
              outputs: [OUT_IN]
              exportEnvAs: OUT
              steps:
                - module:
                    source: inner
                    inputs: [{key: LEVEL, value: inner}, {key: index, value: mine}]
                    outputs: [IN]
                    exportEnvAs: OUT
                    steps:
                      - run: {command: 'echo "IN=$item $LEVEL $DEEP $index" >>"$DEEPSQUARE_ENV"'}
                      - for:
                          parallel: false
                          range: {begin: 7, end: 7}
                          steps: [{run: {command: 'echo "loop $index"'}}]
                - run: {command: 'echo "$LEVEL $OUT_IN"'}
          - run: {command: 'echo "after: ${OUT_OUT_IN-} ${LEVEL-none}" >>"$DEEPSQUARE_TMP/all"'}
    - run: {command: 'sort "$DEEPSQUARE_TMP/all"; rm "$DEEPSQUARE_TMP/all"'}
    """
    outcome = bench.run(job(steps))
    assert outcome.status == 0, outcome.output
    lines = outcome.output.splitlines()
    assert {"loop 7", "outer a inner kept mine", "outer b inner kept mine"} <= set(lines)
    assert all(line.endswith(" none") for line in lines[-2:]), outcome.output
    assert bench.left_behind() == []


def test_launches_of_a_module_end_with_it_and_its_failure_fails_the_step(bench: Bench) -> None:
    steps = r"""
    - module:
        source: x
        exportEnvAs: P
        outputs: [KEY]
        steps:
          - launch:
              steps: [{run: {command: 'trap "echo ended; exit 0" TERM; touch up; while :; do sleep 0.1; done'}}]
          - run: {command: 'until [ -e up ]; do sleep 0.1; done; echo KEY=x >>"$DEEPSQUARE_ENV"; exit 5'}
      catch: [{run: {command: 'echo "caught $DEEPSQUARE_ERROR_CODE ${P_KEY-nothing}"'}}]
    - run: {command: 'echo next'}
    """
    outcome = bench.run(job(steps))
    lines = [line for line in outcome.output.splitlines() if line != "Terminated"]  # printed by some shells
    assert (outcome.status, lines) == (0, ["ended", "caught 5 nothing", "next"])
    assert bench.left_behind() == []


def test_an_unresolved_module_is_an_error() -> None:
    with pytest.raises(InputError, match=r"steps\[0\].use: the module is not resolved"):
        render(job("- use: {source: example.org/a/b}"), StoragePaths())
