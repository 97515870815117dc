"""Definitions with hostile text in every text field, and the calls that a recorder must see for each.

`command` and `if` are code by design. A command is only an argument here, because the recorder runs nothing;
`if` is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from deepgrid.sbatch.quoting import short_name
from deepgrid.workflow import Definition, EnvVar, JobResources, Step, StepRun, canonical, from_canonical
from deepgrid.workflow.models import Bore, NetworkInterface, S3Data, StepAsyncLaunch, StepFor, StepModule, TransportData
from tests.sbatch.support import Bench, Call

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
FIGURES = JobResources(tasks=1, cpus_per_task=1, mem_per_cpu=1, gpus=0)
CANARY = "canary"  # in the folder in which scripts run

S5CMD = """#!/bin/sh
cat /proc/$$/environ >{root}/s5cmd.env
cat /proc/$$/cmdline >{root}/s5cmd.argv
"""


def recorder(root: Path) -> Bench:
    """Return a bench whose programs run nothing."""
    bench = Bench(root, execute=False)
    program = bench.root / "bin" / "s5cmd"
    program.write_text(S5CMD.format(root=bench.root))
    program.chmod(0o755)
    return bench


def hostile() -> st.SearchStrategy[str]:
    anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    return st.lists(st.sampled_from([p.format(c=CANARY) for p in PIECES]) | anything, max_size=6).map("".join)


@dataclass(frozen=True)
class Expected:
    """One call of srun that a definition requires."""

    command: str
    name: str | None
    folder: str | None
    variables: dict[str, str]

    def is_met_by(self, call: Call) -> bool:
        """Return whether the recorder saw this call, byte for byte."""
        folder = call.env.get(b"__dg_work_dir")
        return (
            call.command == self.command.encode()
            and folder == (None if self.folder is None else self.folder.encode())
            and call.shell == b"/bin/sh"
            and call.option("job-name") == (short_name(self.name or "").encode() or None)
            and all(call.env.get(key.encode()) == value.encode() for key, value in self.variables.items())
        )


@dataclass(frozen=True)
class Case:
    """A definition and all calls that it requires, in any order."""

    job: Definition
    expected: tuple[Expected, ...]


def environments(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[EnvVar, ...]]:
    pairs = st.dictionaries(st.sampled_from(NAMES), texts, max_size=3)
    return pairs.map(lambda env: tuple(EnvVar(key=key, value=value) for key, value in env.items()))


def runs(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Step]:
    names, folders = st.none() | texts, st.none() | texts.map(lambda text: "/" + text)
    run = st.builds(StepRun, command=texts, env=environments(texts), work_dir=folders)
    tunnels = texts.map(lambda text: (NetworkInterface(bore=Bore(bore_address="b:2200", target_port=1, secret=text)),))
    apart = st.builds(
        StepRun, command=texts, env=environments(texts), work_dir=folders,
        network=st.sampled_from(["slirp4netns", "pasta"]), custom_network_interfaces=st.just(()) | tunnels,
    )  # fmt: skip
    return st.builds(Step, name=names, run=run | apart)


def steps(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Step]:
    """Return steps of every kind that call srun exactly once per item, for any text."""
    names, run = st.none() | texts, runs(texts)
    bodies = st.lists(run, min_size=1, max_size=2).map(tuple)
    kept = st.builds(StepAsyncLaunch, signal_on_parent_step_exit=st.just(0), steps=bodies)
    loop = st.builds(StepFor, parallel=st.booleans(), items=st.lists(texts, max_size=3).map(tuple), steps=bodies)
    return (
        run
        | st.builds(lambda name, steps, after: Step(name=name, steps=steps, finally_=after), names, bodies, bodies)
        | st.builds(lambda name, loop, after: Step(name=name, for_=loop, catch=after), names, loop, bodies)
        | st.builds(lambda name, launch: Step(name=name, launch=launch), names, kept)
        | st.builds(
            lambda name, module, after: Step(name=name, module=module, finally_=after),
            names,
            modules(texts, bodies),
            bodies,
        )
    )


def modules(
    texts: st.SearchStrategy[str], bodies: st.SearchStrategy[tuple[Step, ...]]
) -> st.SearchStrategy[StepModule]:
    outputs = st.lists(st.sampled_from(NAMES), max_size=3).map(tuple)
    prefixes = st.none() | st.just("P")
    return st.builds(
        StepModule, source=texts, commit=st.none(), inputs=environments(texts), outputs=outputs,
        export_env_as=prefixes, steps=bodies,
    )  # fmt: skip


def buckets(texts: st.SearchStrategy[str]) -> st.SearchStrategy[S3Data]:
    return st.tuples(texts, texts.map(lambda text: "/" + text), texts, texts).map(
        lambda four: S3Data(
            region=four[0],
            bucket_url="s3://bucket",
            path=four[1],
            access_key_id=four[2],
            secret_access_key=four[3],
            endpoint_url="http://127.0.0.1:1",
        )
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    texts = hostile()
    job = Definition(
        resources=FIGURES,
        env=draw(environments(texts)),
        steps=tuple(draw(st.lists(steps(texts), min_size=1, max_size=3))),
        output=TransportData(s3=draw(buckets(texts))),
    )
    return Case(job, tuple(expected(job.steps, {variable.key: variable.value for variable in job.env})))


def expected(steps: tuple[Step, ...], variables: dict[str, str]) -> list[Expected]:
    calls: list[Expected] = []
    for step in steps:
        if step.run:
            own = {variable.key: variable.value for variable in step.run.env}
            own |= {f"__dg_interface_{number}": secret for number, secret in _secrets(step.run)}
            calls.append(Expected(step.run.command, step.name, step.run.work_dir, {**variables, **own}))
        if step.module:
            inputs = {variable.key: variable.value for variable in step.module.inputs}
            calls += expected(step.module.steps, {**variables, **inputs})
        if step.for_:
            for value in step.for_.items or ():
                calls += expected(step.for_.steps, {**variables, "item": value})
        calls += expected(step.steps, variables) + expected(step.finally_, variables)
        calls += expected(step.launch.steps, variables) if step.launch else []
    return calls


def _secrets(run: StepRun) -> Iterator[tuple[int, str]]:
    """Yield the variables of interfaces, which exist only at the start of a task."""
    for number, interface in enumerate(run.custom_network_interfaces):
        if interface.bore and interface.bore.secret is not None:
            yield number, interface.bore.secret


def check(bench: Bench, case: Case) -> None:
    """Run the script. Check that all text arrived, nothing else was executed, and nothing is left."""
    outcome = bench.run(from_canonical(canonical(case.job)))
    assert outcome.status == 0, outcome.output
    assert not (bench.root / CANARY).exists()
    assert bench.left_behind() == []
    calls = list(outcome.calls)
    for wanted in sorted(
        case.expected, key=lambda one: -len(one.variables)
    ):  # otherwise calls with more conditions find no match left
        met = next((call for call in calls if wanted.is_met_by(call)), None)
        assert met, f"{wanted} is not among {calls}"
        calls.remove(met)
    assert not calls, "nothing else was called"
    assert case.job.output
    assert case.job.output.s3
    check_bucket(bench.root, case.job.output.s3)


def check_bucket(root: Path, bucket: S3Data) -> None:
    argv = (root / "s5cmd.argv").read_bytes().split(b"\0")
    assert argv[argv.index(b"--destination-region") + 1] == bucket.region.encode()
    assert argv[-2] == b"s3://bucket" + bucket.path.rstrip("/").encode() + b"/"
    env = dict(pair.split(b"=", 1) for pair in (root / "s5cmd.env").read_bytes().split(b"\0") if pair)
    assert env[b"AWS_SECRET_ACCESS_KEY"] == bucket.secret_access_key.encode()
    assert env[b"AWS_ACCESS_KEY_ID"] == bucket.access_key_id.encode()
