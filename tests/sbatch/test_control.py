"""Order, failures, waiting and signals of steps, with `srun` replaced by a recorder that also runs the command."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from deepgrid.sbatch import render
from deepgrid.workflow import Definition
from tests.sbatch.support import PATIENCE_S, UNDEAF, Bench, job, lines, say
from tests.waiting import wait_until


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ("$A == job", True), ("$A != job", False), ("-n $UNSET", False), ("$(echo job) == $A", True),
        ("$NOTE == written", True), ("1 -lt 2 && $CPUS -eq 8", True),
    ],
)  # fmt: skip
def test_a_condition_sees_the_variables_of_a_step(bench: Bench, condition: str, runs: bool) -> None:
    steps = f"""
    - run: {{command: 'echo NOTE=written >>"$DEEPSQUARE_ENV"'}}
    - if: '{condition}'
      run: {{command: echo runs}}
      finally: [{say("finally")}]
    """
    assert lines(bench, steps, env="[{key: A, value: job}]") == (0, ["runs", "finally"] if runs else [])


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize("condition", ["]]; then", "a b", "(", "'"])
def test_an_invalid_condition_fails_only_its_step(bench: Bench, condition: str) -> None:
    status, out = lines(bench, f'- if: "{condition}"\n  run: {{command: echo no}}')
    assert status == 2
    assert out[-1] == "deepgrid: the condition of a step cannot be evaluated"


def test_catch_handles_a_failure_and_gets_its_status(bench: Bench) -> None:
    steps = f"""
    - steps: [{say("body", "exit 7")}, {say("never")}]
      catch: [{{run: {{command: 'echo caught $DEEPSQUARE_ERROR_CODE'}}}}]
      finally: [{say("finally")}]
    - run: {{command: 'echo "on ${{DEEPSQUARE_ERROR_CODE-unset}}"'}}
    """
    assert lines(bench, steps) == (0, ["body", "caught 7", "finally", "on unset"])


@pytest.mark.parametrize(("status", "caught"), [(0, ""), (7, ", catch: [{name: caught}]"), (7, "")])
def test_finally_gets_the_status_of_the_body_also_if_that_is_0(bench: Bench, status: int, caught: str) -> None:
    tell = "{run: {command: 'echo $DEEPSQUARE_ERROR_CODE'}}"
    found, out = lines(bench, f"- {{steps: [{{run: {{command: exit {status}}}}}], finally: [{tell}]{caught}}}")
    assert (found, out[-1]) == (0 if caught else status, str(status))


def test_a_launch_as_the_last_step_ends_silently(bench: Bench) -> None:
    """bash reports internals if a signal meets a subshell that has not begun. They do not belong into the job's log."""
    steps = f"- {say('a')}\n- launch: {{steps: [{{run: {{command: exec sleep 1000}}}}]}}"
    assert [lines(bench, steps) for _ in range(3)] == [(0, ["a"])] * 3


def test_catch_does_not_run_without_a_failure(bench: Bench) -> None:
    assert lines(bench, f"- {{steps: [{say('a')}], catch: [{say('b')}], finally: [{say('c')}]}}") == (0, ["a", "c"])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{run: {command: 'exit 4'}, finally: [%s]}", (4, ["end"])),
        ("{run: {command: 'exit 4'}, catch: [{run: {command: exit 5}}], finally: [%s]}", (5, ["end"])),
        ("{run: {command: 'exit 4'}, finally: [%s, {run: {command: exit 6}}]}", (6, ["end"])),
        ("{run: {command: ':'}, finally: [%s, {run: {command: exit 6}}]}", (6, ["end"])),
    ],
)
def test_an_uncaught_failure_ends_the_job_with_its_status(
    bench: Bench, step: str, expected: tuple[int, list[str]]
) -> None:
    assert lines(bench, f"- {step % say('end')}\n- {say('never')}") == expected


def test_steps_wait_for_launches_by_name(bench: Bench) -> None:
    steps = """
    - launch: {handleName: One, steps: [{run: {command: 'until [ -e go ]; do sleep 0.05; done; echo one'}}]}
    - run: {command: touch go}
    - dependsOn: [oNE]
      run: {command: echo two}
    - dependsOn: [one]
      run: {command: echo again}
    """
    status, out = lines(bench, steps)
    assert (status, sorted(out[:2]), out[2:]) == (0, ["Waiting for ONE", "one"], ["two", "again"])


def test_waiting_for_a_failed_launch_fails_the_scope(bench: Bench) -> None:
    steps = (
        f"- launch: {{handleName: a, steps: [{say('bad', 'exit 9')}]}}\n- {{dependsOn: [a], run: {{command: echo no}}}}"
    )
    status, out = lines(bench, steps)
    assert (status, sorted(out)) == (9, ["Waiting for A", "bad"])


def test_waiting_for_a_launch_that_was_skipped_says_so(bench: Bench) -> None:
    steps = f"- {{if: '1 -eq 2', launch: {{handleName: a, steps: [{say('x')}]}}}}\n- {{dependsOn: [a]}}"
    assert lines(bench, steps) == (1, ["deepgrid: dependsOn: nothing was launched as A"])


def test_a_caught_launch_is_no_failure(bench: Bench) -> None:
    steps = f"""
    - launch: {{handleName: a, steps: [{say("bad", "exit 9")}]}}
      catch: [{say("caught")}]
      finally: [{say("finally")}]
    - {{dependsOn: [a], run: {{command: echo on}}}}
    """
    status, out = lines(bench, steps)
    out.remove("Waiting for A")
    assert (status, out) == (0, ["bad", "caught", "finally", "on"])


GRACEFUL = """
touch up
trap 'sleep 0.5; echo saved; exit 4' TERM
while :; do sleep 0.05; done
"""


def test_a_program_can_finish_after_the_signal_and_no_command_follows_it(bench: Bench) -> None:
    """The shell around it gets the same signal. It does not end before the program, or with success."""
    (bench.root / "graceful").write_text(GRACEFUL)
    command = f"bash {bench.root}/graceful; echo never"
    steps = f"""
    - launch: {{steps: [{{run: {{command: '{command}'}}}}]}}
    - run: {{command: 'until [ -e up ]; do sleep 0.05; done'}}
    """
    status, output = lines(bench, steps)
    assert (status, output[-1]) == (0, "saved")


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 7", 7), ("nosuch", 127), ("if (", 2), ("kill -TERM $$", 143), ("kill -USR1 $$; true", 138), ("", 0),
     ("# comment", 0), ("(exit 3); trap 'exit $?' EXIT; false", 1), ("set -e; false; true", 1)],
)  # fmt: skip
def test_a_step_ends_with_the_status_of_its_command(bench: Bench, shell: str, command: str, status: int) -> None:
    assert lines(bench, f"- run: {{command: {command!r}, shell: {shell}}}")[0] == status


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_command_sees_no_internal_variables_or_arguments(bench: Bench, shell: str) -> None:
    command = 'set | grep ^__dg; env | grep ^__dg; pwd; echo "$0 $#"'
    folder = bench.root / "step's folder"
    written = f"""- run: {{command: '{command}', shell: {shell}, workDir: "{folder}"}}"""
    assert lines(bench, written) == (0, [str(folder), f"{shell} 0"])


def test_launches_get_their_signal_when_their_scope_ends(bench: Bench) -> None:
    """Without signal 15 the job would never end. The launch's group ends with it, and its `finally` still runs."""
    steps = f"""
    - launch: {{steps: [{{run: {{command: 'echo up; touch up; sleep 1000'}}, finally: [{say("down")}]}}]}}
    - run: {{command: 'until [ -e up ]; do sleep 0.05; done'}}
    """
    assert lines(bench, steps) == (0, ["up", "Terminated", "down"])  # printed by the step's shell about its sleep


@pytest.mark.parametrize("number", [1, 2, 3, 9, 10, 15])
def test_every_signal_ends_a_launch_and_what_it_launched(bench: Bench, number: int) -> None:
    steps = f"""
    - launch:
        signalOnParentStepExit: {number}
        steps:
          - launch: {{steps: [{{run: {{command: 'echo $$ >inner; exec sleep 1000'}}}}]}}
          - run: {{command: 'echo $$ >outer; exec sleep 1000'}}
    - run: {{command: 'until [ -s inner ] && [ -s outer ]; do sleep 0.05; done; cp inner outer "$DEEPSQUARE_TMP"'}}
    """
    assert lines(bench, steps) == (0, [])
    kept = Path(bench.storage.user_tmp) / f"user-{os.getuid()}"
    assert not any(alive(int((kept / name).read_text())) for name in ("inner", "outer"))


@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_a_launch_inside_a_guarded_step_gets_its_signal_too(bench: Bench, number: int) -> None:
    """Found by random workflows: the body is in the background, where shells never trap INT and QUIT."""
    steps = f"""
    - steps:
        - launch:
            signalOnParentStepExit: {number}
            steps: [{{run: {{command: ': >up; exec sleep 1000'}}}}]
          finally: [{{run: {{command: 'echo ended $DEEPSQUARE_ERROR_CODE'}}}}]
        - run: {{command: 'until [ -e up ]; do sleep 0.05; done'}}
      finally: [{say("last")}]
    """
    assert lines(bench, steps) == (0, [f"ended {128 + number}", "last"])


def test_a_launch_without_signal_keeps_the_job_until_it_has_ended(bench: Bench) -> None:
    steps = """
    - launch:
        signalOnParentStepExit: 0
        steps: [{run: {command: 'until [ -e go ]; do sleep 0.05; done; echo kept'}}]
    - run: {command: touch go}
    """
    waiting = "Waiting for a launch that has no signal"
    status, out = lines(bench, steps)
    assert (status, sorted(out)) == (0, [waiting, "kept"])
    status, out = lines(bench, f"- launch: {{signalOnParentStepExit: 0, steps: [{say('late', 'exit 8')}]}}")
    assert (status, sorted(out)) == (8, [waiting, "late"])


def test_a_broken_step_deep_inside_leaves_no_process_and_no_folder(bench: Bench) -> None:
    keep = 'cp $item "$DEEPSQUARE_TMP"'
    both_begun = "until [ -e deep ]; do sleep 0.05; done; exit 13"  # a group that never began runs no `finally`
    steps = f"""
    - for:
        parallel: true
        items: [a, b]
        steps:
          - launch: {{steps: [{{run: {{command: 'echo $$ >$item; exec sleep 1000'}}}}]}}
          - run: {{command: 'until [ -s a ] && [ -s b ]; do sleep 0.05; done'}}
          - steps:
              - run: {{command: '{keep}; if [ $item = b ]; then touch deep; exec sleep 1000; fi; {both_begun}'}}
            finally: [{say("finally $item")}]
      catch: [{{run: {{command: 'exit $((DEEPSQUARE_ERROR_CODE + 1))'}}}}]
    - {say("never")}
    """
    status, out = lines(bench, steps)
    assert (status, sorted(out)) == (14, ["finally a", "finally b"])
    kept = Path(bench.storage.user_tmp) / f"user-{os.getuid()}"
    assert not any(alive(int((kept / name).read_text())) for name in ("a", "b"))


@pytest.mark.recorder("signals the script itself; test_on_slurm cancels a job")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_the_script_ends_all_and_runs_finally(bench: Bench, number: int, status: int) -> None:
    steps = f"""
    - launch: {{steps: [{{run: {{command: 'echo $$ >l; exec sleep 1000'}}}}]}}
    - steps:
        - run: {{command: 'until [ -s l ]; do sleep 0.05; done; cp l "$DEEPSQUARE_TMP"'}}
        - run: {{command: 'echo $$ >"$DEEPSQUARE_TMP/s"; exec sleep 1000'}}
      catch: [{say("never")}]
      finally: [{say("finally")}]
    - {say("never")}
    """
    script = start(bench, job(steps))
    kept = Path(bench.storage.user_tmp) / f"user-{os.getuid()}"
    wait_until(lambda: (kept / "s").exists() and (kept / "s").read_text().endswith("\n"))
    script.send_signal(number)
    output, _ = script.communicate(timeout=PATIENCE_S)
    assert (script.returncode, output.split()) == (status, [b"finally"])
    assert not any(alive(int((kept / name).read_text())) for name in ("l", "s"))
    assert bench.left_behind() == []


def start(bench: Bench, made: Definition) -> subprocess.Popen[bytes]:
    file = bench.root / "script"
    file.write_text(render(made, bench.storage))
    return subprocess.Popen(
        [*UNDEAF, "bash", file], cwd=bench.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PATH": f"{bench.root}/bin:/usr/bin:/bin", "SLURM_JOB_NAME": "0x1", "SLURM_JOB_ID": "7"},
    )  # fmt: skip


def alive(pid: int) -> bool:
    """Return whether a process runs. A zombie process does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_options_for_mapped_ids_mpi_and_binding_take_effect(bench: Bench) -> None:
    outcome = bench.run(
        job("- run: {command: 'id -u; id -g', mapUid: 0, mapGid: 5, mpi: pmi2, disableCpuBinding: true}")
    )
    assert outcome.output.split() == ["0", "5"]
    assert (outcome.calls[0].option("mpi"), outcome.calls[0].option("cpu-bind")) == (b"pmi2", b"none")
