"""Each common mistake in a workflow file has a message that says what is wrong, and where."""

from __future__ import annotations

import pytest

from deepgrid.errors import InputError
from deepgrid.workflow import parse

HEAD = "resources: {tasks: 2, cpusPerTask: 2, memPerCpu: 100, gpus: 0}\n"
UNFITTING = "the indentation of this line fits no line above it"
TABS = "a tab cannot indent; indent with spaces, not tabs"
ROOT = (
    "resources, enableLogging, env, input, inputMode, output, privateFiles, continuousOutputSync, steps,"
    " virtualNetworks"
)


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "job.yaml")
    return [line.removeprefix("job.yaml:") for line in caught.value.message.splitlines()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps:\n  - run:\n      command: x\n     shell: y\n", f"4:6: {UNFITTING}"),
        ("a:\n    b: 1\n  c: 2\n", f"3:3: {UNFITTING}"),
        ("a:\n  - x: 1\n   y: 2\n", f"3:4: {UNFITTING}"),
        ("- a\nb: 1", f"2:1: {UNFITTING}"),
        ("a: 1\n  b: 2", f"2:4: {UNFITTING}"),
        ("a: |\n  x\n y\nb: 1", f"3:2: {UNFITTING}"),
        ("a:\n\tb: 1", f"2:1: {TABS}"),
        ("a:\n  b: 1\n  \tc: 2", f"3:3: {TABS}"),
        ("a:\n  b: 1\n \u00a0c: 2", "3:2: U+00A0 NO-BREAK SPACE cannot indent; indent with spaces"),
        ("a: 'x\n\nb: 1", "3:5: the file ends before the quote that opens in line 1, column 4 is closed"),
        ("a: [\"x\n", "2:1: the file ends before the quote that opens in line 1, column 5 is closed"),
        ("a: 'x\nb: 'y'\n", "2:5: unexpected text after the quote of line 1, column 4; is that quote closed where it"),
        ("a: 'it's'", "1:8: unexpected text after a value in quotes; is that quote closed where it should be?"),
        ("a: [x] y", "1:8: unexpected text after a value"),
        ("a: echo b: c", "1:10: a value that contains ': ' must be in quotes"),
        ("a\u200bb: 1\na\u200bb: 2", "2:1: duplicate field 'a<U+200B ZERO WIDTH SPACE>b'"),
    ],
)  # fmt: skip
def test_text_that_is_no_yaml_is_explained(text: str, message: str) -> None:
    assert faults(text)[0].startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [{name: a, command: x}]", "2:19: steps[0].command: unknown field; it belongs in `run`"),
        ("steps: [{name: a, container: {image: x}}]", "2:19: steps[0].container: unknown field; it belongs in `run`"),
        ("steps: [{name: a, env: []}]", "2:19: steps[0].env: unknown field; it belongs in `run`"),
        ("steps: [{name: a, items: [x]}]", "2:19: steps[0].items: unknown field; it belongs in `for`"),
        ("steps: [{name: a, handleName: x}]", "2:19: steps[0].handleName: unknown field; it belongs in `launch`"),
        ("steps: [{run: {command: a, image: x}}]",
         "2:28: steps[0].run.image: unknown field; it belongs in `container`"),
        ("steps: []\nrun: {command: a}",
         f"3:1: run: unknown field; it belongs in `steps`; expected at the root: {ROOT}"),
        ("steps: []\ncpusPerTask: 2", "3:1: cpusPerTask: unknown field; it belongs in `resources`"),
        ("steps: []\nstep: 2", "3:1: step: unknown field (did you mean 'steps'?)"),
        ("steps: []\nversion: 2", f"3:1: version: unknown field; expected at the root: {ROOT}"),
        ("steps: [{run: {command: x, shell: bash}}]", "ENTRYPOINT (did you mean /bin/bash?)"),
        ("steps: [{run: {command: x, shell: ash}}]", "ENTRYPOINT (did you mean /bin/ash?)"),
        ("steps: [{launch: {signalOnParentStepExit: 18, steps: []}}]",
         "2:43: steps[0].launch.signalOnParentStepExit: '18' is not one of 0, 1, 2, 3, 9, 10, 12, 14, 15"),
        ("steps: [{for: {parallel: true, range: {begin: 1, end: " + "9" * 48 + "}, steps: []}}]",
         "2:55: steps[0].for.range.end: is too large: it must be at most 2147483647"),
        ("steps: [{ru\u200bn: {command: x}}]",
         "2:10: steps[0].ru<U+200B ZERO WIDTH SPACE>n: unknown field (did you mean 'run'?)"),
        ("steps: [{\u00a0run: {command: x}}]",
         "2:10: steps[0].<U+00A0 NO-BREAK SPACE>run: unknown field (did you mean 'run'?)"),
        ("steps: [{run: {command: x, shell: '/bin/sh\u202e'}}]",
         "2:35: steps[0].run.shell: '/bin/sh<U+202E RIGHT-TO-LEFT OVERRIDE>' is not one of"),
        ("steps: []\nenv: [{key: A, value: }]", '3:22: env[0].value: is empty; write "" for an empty text'),
    ],
)  # fmt: skip
def test_fields_that_are_wrong_are_explained(text: str, message: str) -> None:
    (found,) = faults(HEAD + text)
    assert message in found


def test_everything_below_job_is_sent_to_the_root() -> None:
    assert faults(f"job:\n  {HEAD}  steps: []\n") == [
        "1:1: job: unknown field; its fields belong at the root; expected at the root: " + ROOT,
        "1:1: resources: is required",
        "1:1: steps: is required",
    ]


def test_a_number_with_48_digits_is_too_large_for_every_field() -> None:
    digits = "1" * 48
    (found,) = faults(HEAD.replace("tasks: 2", f"tasks: {digits}") + "steps: []\n")
    assert found == "1:20: resources.tasks: is too large: it must be at most 100000000"
    (found,) = faults(HEAD + f"inputMode: {digits}\nsteps: []\n")
    assert found == "2:12: inputMode: is too large: it must be at most 511 (0777 in octal)"


@pytest.mark.parametrize("command", ["echo “a”", "echo ‘a’", "echo „a“"])
def test_typographic_quotes_in_a_command_are_a_warning(command: str) -> None:
    (warning,) = parse(HEAD + f"steps: [{{run: {{command: {command}}}}}]\n", "job.yaml").warnings
    assert warning.startswith("job.yaml:2:16: steps[0].run.command: warning: contains U+20")
    assert warning.endswith("which is not a quote for a shell; write ' or \"")
    assert parse(HEAD + "steps: [{run: {command: echo it’s fine}}]\n", "job.yaml").warnings == ()


def test_the_gpus_of_older_files_get_a_hint() -> None:
    text = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0, gpusPerTask: 1}\nsteps: []\n"
    with pytest.raises(InputError, match="resources.gpusPerTask: unknown field .did you mean 'gpus'"):
        parse(text, "job.yaml")


GPUS = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 2}\n"


def test_gpus_that_no_step_gets_are_a_warning() -> None:
    (warning,) = parse(GPUS + "steps: [{run: {command: x}}, {run: {command: x}}]\n", "job.yaml").warnings
    assert warning.startswith("job.yaml:1:53: resources.gpus: warning: is paid for, but no step gets a GPU")
    inner = "[{run: {command: x, resources: {gpusPerTask: 1}}}]"
    assert parse(GPUS + f"steps: [{{run: {{command: x}}, finally: {inner}}}]\n", "job.yaml").warnings == ()
    assert parse(GPUS + "steps: []\n", "job.yaml").warnings == ()


@pytest.mark.parametrize("word", ["false", "'false'", "0", '"no"'])
def test_a_condition_of_one_word_is_a_warning(word: str) -> None:
    (warning,) = parse(HEAD + f"steps: [{{if: {word}, run: {{command: x}}}}]\n", "job.yaml").warnings
    assert warning.startswith(
        "job.yaml:2:10: steps[0].if: warning: is always true: bash's [[ ]] treats any word as true"
    )


@pytest.mark.parametrize(
    "condition", ["true", "$A", "'`false`'", "-n a", "a = b", "a=b", "'! a'", "'\"$A\"'", "\"''\""]
)
def test_other_conditions_are_none(condition: str) -> None:
    assert parse(HEAD + f"steps: [{{if: {condition}, run: {{command: x}}}}]\n", "job.yaml").warnings == ()


TWO = "resources: {tasks: 2, cpusPerTask: 1, memPerCpu: 100, gpus: 1}\n"
G = "resources: {gpusPerTask: 1}"
SERVER = "{launch: {handleName: up, steps: [{run: {command: server, RES}}]}}"
HELD = "waits until a launch before it has ended: together they ask for"


@pytest.mark.parametrize(
    ("launched", "later", "places"),
    [
        ("resources: {tasks: 2}", "{run: {command: x}}", {"steps[2].run": "3 CPUs, the job has 2"}),
        ("resources: {memPerCpu: 150}", "{run: {command: x}}", {"steps[2].run": "250 MB of memory, the job has 200"}),
        (G, f"{{run: {{command: x, {G}}}}}", {"steps[2].run": "2 GPUs, the job has 1"}),
        (G, "{run: {command: x}}", {}),
        ("resources: {tasks: 2}", "{dependsOn: [UP], run: {command: x}}", {}),
        ("resources: {tasks: 2}", "{steps: [{dependsOn: [up]}]}, {run: {command: x}}", {}),
        ("resources: {tasks: 2}", "{launch: {steps: [{run: {command: x}}]}}", {}),
        (
            "resources: {tasks: 2}",
            "{steps: [{run: {command: x}}], finally: [{run: {command: y}}]}, {run: {command: z}}, {run: {command: z}}",
            dict.fromkeys(
                ("steps[2].steps[0].run", "steps[2].finally[0].run", "steps[3].run"), "3 CPUs, the job has 2"
            ),
        ),
    ],
)
def test_a_step_that_a_launch_holds_back_is_a_warning(launched: str, later: str, places: dict[str, str]) -> None:
    text = f"steps: [{{run: {{command: first, {G}}}}}, {SERVER.replace('RES', launched)}, {later}]\n"
    told = [warning.split(": ", 1)[1] for warning in parse(TWO + text, "job.yaml").warnings]
    rest = "; give them fewer resources, or wait with dependsOn"
    assert told == [f"{place}: warning: {HELD} {what}{rest}" for place, what in places.items()]
