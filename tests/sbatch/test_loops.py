"""Sequential and parallel loops, with `srun` replaced by a recorder that also runs the command."""

from __future__ import annotations

import json
import os

import pytest

from tests.sbatch.support import Bench, job, lines, say, without_progress


def test_nested_loops_run_every_pair_and_restore_the_outer_value(bench: Bench) -> None:
    steps = """
    - for:
        parallel: false
        items: [a, "b 'c'"]
        steps:
          - for: {parallel: false, range: {begin: 0, end: 10, increment: 5}, steps: [
              {run: {command: 'echo "$item $index"'}}]}
          - for: {parallel: false, items: ["x,y"], steps: [{run: {command: 'echo "inner $item" >inner'}}]}
          - run: {command: 'echo "$item: $(cat inner)"'}
          - run: {command: 'echo "$item: after ${index-none}"'}
    - run: {command: 'echo "${item-none}"'}
    """
    expected = [f"{i}{rest}" for i in ("a", "b 'c'") for rest in (" 0", " 5", " 10", ": inner x,y", ": after none")]
    assert lines(bench, steps) == (0, [*expected, "none"])


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("range: {begin: 0, end: 2, increment: 0}", ["0", "1", "2"]),
        ("range: {begin: 1, end: -1, increment: -1}", ["1", "0", "-1"]),
        ("range: {begin: 1, end: 0}", []),
        ("items: []", []),
        ("items: ['']", [""]),
        ("name: x", []),
    ],
)
def test_loops_count_by_their_range(bench: Bench, source: str, values: list[str]) -> None:
    source = "" if source.startswith("name") else source + ","
    steps = f"- for: {{parallel: false, {source} steps: [{{run: {{command: 'echo \"$item$index\"'}}}}]}}"
    assert lines(bench, steps) == (0, values)


def test_the_first_iteration_that_fails_ends_the_others_at_once(bench: Bench) -> None:
    waits = "if [ $item = c ]; then exit 6; else touch $item; exec sleep 1000; fi"
    begun = "until [ $item != c ] || { [ -e a ] && [ -e b ]; }; do sleep 0.05; done"
    steps = f"""
    - for:
        parallel: true
        items: [a, b, c]
        steps: [{{run: {{command: '{begun}'}}}}, {{run: {{command: '{waits}'}}, finally: [{say("$item ends")}]}}]
      catch: [{say("caught $DEEPSQUARE_ERROR_CODE")}]
    """
    status, out = lines(bench, steps)
    assert (status, sorted(out[:-1]), out[-1]) == (0, ["a ends", "b ends", "c ends"], "caught 6")


@pytest.mark.recorder("a real step is no child of the script, so it cannot find the iteration")
def test_an_iteration_that_is_killed_fails_the_loop(bench: Bench) -> None:
    """A killed iteration cannot report its own failure."""
    kill_child_of_script = """up() { ps -o ppid= -p "$1" | tr -d ' '; }; me=$$
        until [ "$(up "$(up $me)")" = "$TESTER" ]; do me=$(up $me); done; kill -KILL $me"""
    item = {"run": {"command": f"if [ $item = b ]; then {kill_child_of_script}; fi"}}
    steps = "- " + json.dumps({"for": {"parallel": True, "items": ["a", "b"], "steps": [item]}})
    outcome = bench.run(job(steps), TESTER=str(os.getpid()))
    assert (outcome.status, bench.left_behind()) == (137, [])


def test_parallel_iterations_overlap(bench: Bench) -> None:
    """Each iteration waits for the start of all others. One after another they would never end."""
    meet = 'touch "met.$item"; until [ -e met.a ] && [ -e met.b ] && [ -e met.c ]; do sleep 0.05; done; echo $item'
    status, out = lines(bench, f"- for: {{parallel: true, items: [a, b, c], steps: [{{run: {{command: '{meet}'}}}}]}}")
    assert (status, sorted(out)) == (0, ["a", "b", "c"])


def test_a_failing_iteration_ends_the_others_and_the_job(bench: Bench) -> None:
    command = "if [ $index = 2 ]; then exit 5; else exec sleep 1000; fi"
    first = "if [ $index = 1 ]; then exit 0; fi; " + command
    loop = f"for: {{parallel: true, range: {{begin: 1, end: 4}}, steps: [{{run: {{command: '{first}'}}}}]}}"
    assert lines(bench, f"- {loop}\n- {say('no')}") == (5, [])


def test_loop_variables_win_over_those_of_the_job(bench: Bench) -> None:
    steps = "- for: {parallel: false, items: [mine], steps: [{if: '$item == mine', run: {command: 'echo $item'}}]}"
    assert lines(bench, steps, env="[{key: item, value: job}]") == (0, ["mine"])


def test_a_wait_covers_every_launch_of_a_loop(bench: Bench) -> None:
    body = "{launch: {handleName: h, steps: [{run: {command: 'echo $index'}}]}}"
    steps = f"""
    - for: {{parallel: false, range: {{begin: 1, end: 3}}, steps: [{body}]}}
    - dependsOn: [h]
      run: {{command: echo all}}
    """
    status, printed = lines(bench, steps)
    out = without_progress("\n".join(printed))
    assert (status, sorted(out[:3]), out[3:]) == (0, ["1", "2", "3"], ["all"])
