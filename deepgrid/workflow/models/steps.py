"""Steps: commands, groups, loops, launches and modules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Env, Model
from deepgrid.workflow.models.fields import EMPTY_LIST, Commit, EnvName, Handle, Number, Text, Truth
from deepgrid.workflow.models.running import StepRun

DEFAULT_SIGNAL = 15
KINDS = ("steps", "run", "for", "launch", "use", "module")


class ForRange(Model):
    """Whole numbers from `begin` to `end`, both included."""

    begin: Number
    """First number."""
    end: Number
    """Last number, if counting from `begin` reaches it."""
    increment: Number | None = None
    """Difference between two numbers; 1 by default, may be negative."""

    @property
    def numbers(self) -> range:
        step = self.increment or 1
        return range(self.begin, self.end + (1 if step > 0 else -1), step)


class StepFor(Model):
    """A loop over texts or numbers."""

    parallel: Truth
    """Start all iterations at once; otherwise one after another."""
    items: tuple[Text, ...] | None = None
    """Texts to iterate over; the current one is $item."""
    range: ForRange | None = None
    """Numbers to iterate over; the current one is $index."""
    steps: tuple[Step, ...]
    """What each iteration does."""

    @model_validator(mode="after")
    def _one_source(self) -> StepFor:
        if self.items is not None and self.range is not None:
            raise PydanticCustomError("one_of", "has both items and range; keep one of them")
        return self

    @property
    def iterations(self) -> int:
        return len(self.range.numbers if self.range else self.items or ())


class StepAsyncLaunch(Model):
    """Steps that run in the background while the job continues."""

    handle_name: Handle | None = None
    """Name for `dependsOn` of later steps; upper and lower case are equal."""
    signal_on_parent_step_exit: Literal[0, 1, 2, 3, 9, 10, 12, 14, 15] | None = None
    """Signal sent to them when the steps around them have ended; 15 (TERM) by default, 0 lets them finish."""
    steps: tuple[Step, ...]
    """Steps that run in the background, one after another."""

    @property
    def signal(self) -> int:
        return DEFAULT_SIGNAL if self.signal_on_parent_step_exit is None else self.signal_on_parent_step_exit


class StepUse(Model):
    """A module: reusable steps from another file or repository."""

    source: Text
    """HOST/OWNER/REPO[/PATH][@TAG or @COMMIT], https://, ssh:// or file:// address[//PATH][@...], or ./FOLDER."""
    args: Env = ()
    """Values of the module's inputs, by their keys."""
    export_env_as: EnvName | None = None
    """The module's outputs become variables of later steps with this name and '_' in front."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """Steps that are passed to the module, which may run them."""


class StepModule(Model):
    """Replaces `use` when the job is submitted: the module's steps and their origin."""

    source: Text
    """The source, as written in the workflow file."""
    commit: Commit | None = None
    """The commit of the repository at that time; none for a folder."""
    inputs: Env = ()
    """Values of its inputs, as variables of its steps. Inputs without a value are left out."""
    outputs: Annotated[tuple[EnvName, ...], EMPTY_LIST] = ()
    """Variables that it writes to $DEEPSQUARE_ENV."""
    export_env_as: EnvName | None = None
    """Outputs become variables of later steps with this name and '_' in front."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """Its steps, one after another."""


class Step(Model):
    """One step: at most one of steps, run, for, launch, use and module; without any of them it only prints its name."""

    name: Text | None = None
    """Printed before the step; the name of its Slurm step."""
    depends_on: Annotated[tuple[Handle, ...], EMPTY_LIST] = ()
    """Launches to wait for before the step starts. They must come earlier in the same scope."""
    if_: Text | None = Field(default=None, alias="if")
    """Content of a bash [[ ]] test. If it is false, the step is skipped."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """A group of steps."""
    run: StepRun | None = None
    """One command."""
    for_: StepFor | None = Field(default=None, alias="for")
    """A loop."""
    launch: StepAsyncLaunch | None = None
    """Steps in the background."""
    use: StepUse | None = None
    """A module: reusable steps from another file or repository."""
    module: StepModule | None = None
    """Replaces `use` when the job is submitted; not written by hand."""
    catch: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """Runs when the step failed, and the job then continues; $DEEPSQUARE_ERROR_CODE is the exit status."""
    finally_: Annotated[tuple[Step, ...], EMPTY_LIST] = Field(default=(), alias="finally")
    """Runs at the end in any case."""

    @model_validator(mode="after")
    def _one_kind(self) -> Step:
        values = (self.steps, self.run, self.for_, self.launch, self.use, self.module)
        found = [kind for kind, value in zip(KINDS, values, strict=True) if value]
        if len(found) > 1:
            sentence = f"has {' and '.join(found)}; a step has at most one of {', '.join(KINDS[:-1])}"
            raise PydanticCustomError("one_of", sentence)
        return self


StepFor.model_rebuild()
StepAsyncLaunch.model_rebuild()
StepUse.model_rebuild()
StepModule.model_rebuild()
