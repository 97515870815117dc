"""Steps: commands, and what orders them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.base import Env, Model
from deepgrid.workflow.fields import EMPTY_LIST, Commit, EnvName, Handle, Number, Text, Truth
from deepgrid.workflow.running import StepRun

DEFAULT_SIGNAL = 15
KINDS = ("steps", "run", "for", "launch", "use", "module")


class ForRange(Model):
    """Whole numbers from `begin` to `end`, both included."""

    begin: Number
    """First number."""
    end: Number
    """Last number, if the steps from `begin` meet it."""
    increment: Number | None = None
    """Distance from one to the next; 1 by default, may be negative."""

    @property
    def numbers(self) -> range:
        step = self.increment or 1
        return range(self.begin, self.end + (1 if step > 0 else -1), step)


class StepFor(Model):
    """A loop over texts or numbers."""

    parallel: Truth
    """Start all iterations at once; otherwise one after another."""
    items: tuple[Text, ...] | None = None
    """Texts to go through; the current one is $item."""
    range: ForRange | None = None
    """Numbers to go through; the current one is $index."""
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
    """Steps that run in the background while the job goes on."""

    handle_name: Handle | None = None
    """What `dependsOn` of a later step waits for; capitals do not matter."""
    signal_on_parent_step_exit: Literal[0, 1, 2, 3, 9, 10, 12, 14, 15] | None = None
    """Signal that ends them when the steps around them have ended; 15 (TERM) by default, 0 lets them finish."""
    steps: tuple[Step, ...]
    """What runs in the background, one after another."""

    @property
    def signal(self) -> int:
        return DEFAULT_SIGNAL if self.signal_on_parent_step_exit is None else self.signal_on_parent_step_exit


class StepUse(Model):
    """A module: steps that somebody else wrote."""

    source: Text
    """HOST/OWNER/REPO[/PATH][@TAG or @COMMIT], https://, ssh:// or file:// address[//PATH][@...], or ./FOLDER."""
    args: Env = ()
    """Values of the module's inputs, by their keys."""
    export_env_as: EnvName | None = None
    """The module's outputs become variables of later steps with this name and '_' in front."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """Steps that are handed to the module, which may have them run."""


class StepModule(Model):
    """What `use` becomes when the job is submitted: the module's steps, and where they are from."""

    source: Text
    """The source as the workflow file says it."""
    commit: Commit | None = None
    """The commit of the repository that it was at that time; none for a folder."""
    inputs: Env = ()
    """Values of all its inputs: variables of its steps."""
    outputs: Annotated[tuple[EnvName, ...], EMPTY_LIST] = ()
    """Variables that it writes to $DEEPSQUARE_ENV."""
    export_env_as: EnvName | None = None
    """Outputs become variables of later steps with this name and '_' in front."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """Its steps, one after another."""


class Step(Model):
    """One step: at most one of steps, run, for, launch, use and module; without any it only prints its name."""

    name: Text | None = None
    """Printed before the step; the name of its Slurm step."""
    depends_on: Annotated[tuple[Handle, ...], EMPTY_LIST] = ()
    """Launches to wait for, before anything else; they must have been launched before, in the same scope."""
    if_: Text | None = Field(default=None, alias="if")
    """Inside of a bash [[ ]] test; when it is false the step is skipped."""
    steps: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """A group of steps."""
    run: StepRun | None = None
    """One command."""
    for_: StepFor | None = Field(default=None, alias="for")
    """A loop."""
    launch: StepAsyncLaunch | None = None
    """Steps in the background."""
    use: StepUse | None = None
    """A module: steps that somebody else wrote."""
    module: StepModule | None = None
    """What `use` becomes when the job is submitted; not written by hand."""
    catch: Annotated[tuple[Step, ...], EMPTY_LIST] = ()
    """What runs when the step failed, which is then forgiven; $DEEPSQUARE_ERROR_CODE is its exit status."""
    finally_: Annotated[tuple[Step, ...], EMPTY_LIST] = Field(default=(), alias="finally")
    """What runs at the end in any case."""

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
