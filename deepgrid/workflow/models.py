"""The workflow language: what a job definition may say, as checked models.

YAML names are camelCase, attributes are snake_case. Values are taken as written: no text becomes
a number, no number a truth value. Values that may be secret stay out of every `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

LARGEST = 2**31 - 1  # Slurm's counts have 32 bits, and no product of three may leave exact integers elsewhere
LONGEST_BYTES = 120_000  # one argument or variable has at most 128 KiB, its name included
MOST_STEPS = 1000  # shellcheck takes 5 ms and half a MB a step

# Bash sets these itself, fixes them or evaluates what is assigned: a value would not arrive, or would run.
SHELL_NAMES = frozenset(
    """_ BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT
    BASH_EXECUTION_STRING BASH_LINENO BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_TRAPSIG
    BASH_VERSINFO BASH_VERSION BASH_XTRACEFD DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME FUNCNEST GROUPS
    HISTCMD LINENO OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SRANDOM UID""".split()  # noqa: SIM905 - a list literal would take four times the room
)
LIBRARY_NAMES = frozenset({"PATH", "LD_LIBRARY_PATH"})
OWN_PREFIX = "__dg_"  # variables of the batch script itself

_ENV_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


def _sendable(text: str) -> str:
    """Refuse what no process can receive: NUL, halves of UTF-16 pairs, more than Linux lets one argument have."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise PydanticCustomError("text", "must not contain NUL or lone surrogates")
    if len(text.encode()) > LONGEST_BYTES:
        raise PydanticCustomError("text", f"must not be longer than {LONGEST_BYTES} bytes")
    return text


def _env_name(name: str) -> str:
    if not _ENV_NAME.match(name):
        raise PydanticCustomError("env_name", "must be letters, digits and '_', not starting with a digit")
    if name in LIBRARY_NAMES:
        raise PydanticCustomError("env_name", "PATH and LD_LIBRARY_PATH cannot be set; set them inside the command")
    if name in SHELL_NAMES or name.startswith(OWN_PREFIX):
        raise PydanticCustomError("env_name", "is a variable of the shell itself; choose another name")
    return name


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise PydanticCustomError("absolute", "must start with '/'")
    return path


def _none_is_empty(value: object) -> object:
    return () if value is None else value


Count = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
CountOrNone = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag = Annotated[bool, Field(strict=True), BeforeValidator(lambda value: False if value is None else value)]
Text = Annotated[str, Field(strict=True), AfterValidator(_sendable)]
EnvName = Annotated[Text, AfterValidator(_env_name)]
AbsolutePath = Annotated[Text, AfterValidator(_absolute)]


class Model(BaseModel):
    """Base of the language: no unknown fields, no change after loading, no input echoed in errors.

    `LATER` names fields of the full language that this version does not carry out yet.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
    )
    LATER: ClassVar[frozenset[str]] = frozenset()


class EnvVar(Model):
    """One environment variable; the value is any text and may be a secret."""

    key: EnvName
    value: Text = Field(repr=False)


Env = Annotated[tuple[EnvVar, ...], BeforeValidator(_none_is_empty)]


class JobResources(Model):
    """What the whole job gets; memory in MB per CPU, `gpus` for the whole job."""

    tasks: Count
    cpus_per_task: Count
    mem_per_cpu: Count
    gpus: CountOrNone

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    @property
    def mem_mb(self) -> int:
        return self.cpus * self.mem_per_cpu


class StepRunResources(Model):
    """What one step takes of the job's resources; an absent figure is 1 task, the job's, or no GPU."""

    tasks: Count | None = None
    cpus_per_task: Count | None = None
    mem_per_cpu: Count | None = None
    gpus_per_task: CountOrNone | None = None


class StepRun(Model):
    """One command, run by a shell in `tasks` processes."""

    LATER = frozenset(
        {"container", "network", "dns", "customNetworkInterfaces", "mapUid", "mapGid", "disableCpuBinding", "mpi"}
    )

    command: Text = Field(repr=False)
    shell: Literal["/bin/sh", "/bin/bash"] | None = None
    resources: StepRunResources | None = None
    env: Env = ()
    work_dir: AbsolutePath | None = None

    def resources_in(self, job: JobResources) -> ResolvedResources:
        """This step's figures, with the absent ones taken from the job."""
        own = self.resources or StepRunResources()
        return ResolvedResources(
            tasks=own.tasks or 1,
            cpus_per_task=own.cpus_per_task or job.cpus_per_task,
            mem_per_cpu=own.mem_per_cpu or job.mem_per_cpu,
            gpus_per_task=own.gpus_per_task or 0,
        )


class ResolvedResources(Model):
    """Figures of one step with nothing left open; memory in MB per CPU."""

    tasks: Count
    cpus_per_task: Count
    mem_per_cpu: Count
    gpus_per_task: CountOrNone

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    @property
    def mem_mb(self) -> int:
        return self.cpus * self.mem_per_cpu

    @property
    def gpus(self) -> int:
        return self.tasks * self.gpus_per_task


class Step(Model):
    """One step of a job; without `run` it only prints its name."""

    LATER = frozenset({"dependsOn", "if", "steps", "for", "launch", "use", "catch", "finally"})

    name: Text | None = None
    run: StepRun | None = None


class Job(Model):
    """A job definition: resources, environment and the steps, run one after another."""

    LATER = frozenset({"input", "inputMode", "output", "continuousOutputSync", "virtualNetworks"})

    resources: JobResources
    enable_logging: Flag = False
    env: Env = ()
    steps: tuple[Step, ...] = Field(max_length=MOST_STEPS)

    @model_validator(mode="after")
    def _steps_fit(self) -> Job:
        faults = list(_oversized_steps(self))
        if faults:
            raise PydanticCustomError("located", "steps ask for more than the job has", {"faults": faults})
        return self


def _oversized_steps(job: Job) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where a step asks for more than the whole job, as (path, message)."""
    for index, step in enumerate(job.steps):
        if step.run is None:
            continue
        wanted, place = step.run.resources_in(job.resources), ("steps", index, "run", "resources")
        for what, need, limit in (
            ("CPUs", wanted.cpus, job.resources.cpus),
            ("MB of memory", wanted.mem_mb, job.resources.mem_mb),
            ("GPUs", wanted.gpus, job.resources.gpus),
        ):
            if need > limit:
                yield place, f"asks for {need} {what} in all, the job has {limit}"


def field_of(model: type[BaseModel], yaml_name: str) -> Any:
    """The pydantic field that the YAML name stands for, or None."""
    return next((f for f in model.model_fields.values() if f.alias == yaml_name), None)


def yaml_names(model: type[BaseModel]) -> list[str]:
    """The names that YAML may use in this model."""
    return [field.alias or name for name, field in model.model_fields.items()]
