"""Whatever a user writes arrives at the step byte for byte, and nothing of it is executed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.sbatch import StoragePaths, render
from deepgrid.sbatch.quoting import only_quoted, quote
from deepgrid.services.script_check import check_script
from deepgrid.workflow import EnvVar, Job, JobResources, Step, StepRun
from tests.sbatch.test_script import Bench

PIECES = [
    "'", '"', "`touch {c}`", "$(touch {c})", "${{IFS}}", "\n", "\n#SBATCH --uid=0\n", "\nEOF\n", "EOF", "; touch {c};",
    "\\", "\\'", "$'\\n'", "\r\n", "\x01", "\x7f", "\x1b[2J", "!!", "*", "~", " -x", "--", "|&", "\u2019",
    "\u2018x\u201c", "\ufeff", "\u202e", "é", "日本", "😀", "{{{{ 7*7 }}}}", "{{% raw %}}", "a[$(touch {c})]", "=,",
    "\t", "%s%n", "x" * 300,
]  # fmt: skip
NAMES = [
    "A", "a_1", "IFS", "HOME", "ENV", "BASH_ENV", "PS4", "LC_ALL", "LANG", "CDPATH", "EXECIGNORE", "GLOBIGNORE",
    "TMOUT",
    "POSIXLY_CORRECT", "SHLVL", "OLDPWD", "PWD", "TMPDIR", "STORAGE_PATH", "DEEPSQUARE_ENV", "SLURM_JOB_ID", "NTASKS",
    "OPTARG", "REPLY", "MAPFILE", "COLUMNS", "TERM", "HISTFILE", "LC_CTYPE", "LINES", "PROMPT_COMMAND", "srun",
]  # fmt: skip


def hostile(canary: str) -> st.SearchStrategy[str]:
    anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    return st.lists(st.sampled_from([p.format(c=canary) for p in PIECES]) | anything, max_size=6).map("".join)


FIGURES = JobResources(tasks=1, cpus_per_task=1, mem_per_cpu=1, gpus=0)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("recorder"), execute=False)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def variables(env: dict[str, str]) -> tuple[EnvVar, ...]:
    return tuple(EnvVar(key=key, value=value) for key, value in env.items())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_hostile_text_arrives_unchanged_and_unexecuted(recorder: Bench, data: st.DataObject) -> None:
    canary = recorder.root / "canary"
    texts = hostile(str(canary))
    env = st.dictionaries(st.sampled_from(NAMES), texts, max_size=4)
    job_env, step_env = data.draw(env), data.draw(env)
    name, folder, command = data.draw(texts), data.draw(texts), data.draw(texts)
    run = StepRun(command=command, env=variables(step_env), work_dir="/" + folder)
    outcome = recorder.run(Job(resources=FIGURES, env=variables(job_env), steps=(Step(name=name, run=run),)))

    assert outcome.status == 0, outcome.output
    (call,) = outcome.calls
    for key, value in {**job_env, **step_env}.items():
        assert call.env[key.encode()] == value.encode(), key
    assert call.option("job-name") == (name.encode() or None)
    assert call.argv[-3:] == [b"/" + folder.encode(), b"/bin/sh", command.encode()]
    assert not canary.exists()
    assert recorder.left_behind() == []


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_hostile_working_folder_is_just_a_folder(bench: Bench, data: st.DataObject) -> None:
    canary = bench.root / "canary"
    folder = f"{bench.root}/work/" + data.draw(hostile(str(canary))).replace("/", "")[:60]
    run = StepRun(command="printf '%s' \"$(pwd; echo .)\"", work_dir=folder)
    outcome = bench.run(Job(resources=FIGURES, steps=(Step(run=run),)))
    assert (outcome.status, outcome.output) == (0, str(Path(folder)) + "\n.")
    assert not canary.exists()


@settings(max_examples=30, deadline=None)
@given(hostile("/nonexistent/c"), hostile("/nonexistent/c"))
def test_hostile_text_passes_the_checkers(one: str, other: str) -> None:
    run = StepRun(command=one, env=variables({"B": other}), work_dir="/" + one)
    job = Job(resources=FIGURES, env=variables({"A": one}), steps=(Step(name=other, run=run),))
    script = render(job, StoragePaths())
    check_script(script)
    assert "\r" not in script, "sbatch refuses scripts with carriage returns"


def test_templates_cannot_put_out_unquoted_text() -> None:
    with pytest.raises(TypeError, match="not quoted"):
        only_quoted("text")
    assert only_quoted(quote("a b")) == "'a b'"
    with pytest.raises(ValueError, match="NUL"):
        quote("\0")
