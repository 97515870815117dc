"""Replaces every `use` of a workflow by the steps of its module, so that the stored definition is complete.

This happens on the customer's machine. The definition records the commit of each module. Faults of all modules are
reported at once, each with its file and line, and the step that uses the module.
"""

from __future__ import annotations

import os.path
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.modules.calling import Call, WrongArguments, faults_of_call
from deepgrid.modules.conditions import faulty_conditions
from deepgrid.modules.reach import CustomerReach, ModuleLimits, Reach, Unavailable
from deepgrid.modules.reading import ModuleFaults, read_module
from deepgrid.modules.repositories import FoundFile, ModuleFiles, default_cache
from deepgrid.modules.source import Folder, Source, parse_source
from deepgrid.workflow import Definition, LoadedWorkflow, Step, canonical, yaml_nodes
from deepgrid.workflow import load as load_file
from deepgrid.workflow.advice import advice_on, advice_on_whole
from deepgrid.workflow.faults import MOST_SHOWN, all_faults, dotted
from deepgrid.workflow.loading import fault_lines, warning_lines
from deepgrid.workflow.models import Module, StepModule, StepUse
from deepgrid.workflow.models.rules import faults_in_steps, level
from deepgrid.workflow.models.walk import steps_in
from deepgrid.workflow.yaml_nodes import Path

DEFAULT_LIMITS = ModuleLimits()


def load(
    path: str | FilePath,
    cache: FilePath | None = None,
    limits: ModuleLimits = DEFAULT_LIMITS,
    *,
    ignore_unknown_fields: bool = False,
) -> LoadedWorkflow:
    """Read and check a workflow file and all its modules.

    Args:
        path: The workflow file.
        cache: Folder for files of repositories.
        limits: Bounds on the modules.
        ignore_unknown_fields: Warn of fields that the language does not have, instead of refusing them. This is for
            files that were written for other tools.

    Raises:
        InputError: One line per fault. It is transient if the only faults are repositories that did not answer.
    """
    loaded = load_file(path, ignore_unknown_fields=ignore_unknown_fields)
    return resolve(loaded, os.path.dirname(path), cache, limits, ignore_unknown_fields=ignore_unknown_fields)


def resolve(
    loaded: LoadedWorkflow,
    folder: str = "",
    cache: FilePath | None = None,
    limits: ModuleLimits = DEFAULT_LIMITS,
    *,
    ignore_unknown_fields: bool = False,
    reach: Reach | None = None,
) -> LoadedWorkflow:
    """Return the same for a workflow that was read already. Relative sources start at `folder`.

    `reach` says what may be read, and how; by default all that the customer's own git reaches. A workflow without a
    name came as data, so its faults have no places in a file.
    """
    job = loaded.model
    until = time.monotonic() + limits.within_s
    files = ModuleFiles(cache or default_cache(), until, limits, reach or CustomerReach())
    resolution = _Resolution(job, files, until, limits, ignore_unknown_fields)
    steps = resolution.steps_of_file(job.steps, _File(loaded.name, loaded.document, Folder(folder)))
    resolution.raise_faults()
    if not any(step.use for _, step in steps_in(job.steps, ("steps",))):
        return loaded
    fields = {name: getattr(job, name) for name in Definition.model_fields} | {"steps": steps}
    try:
        resolved = Definition.model_validate(fields, by_alias=False, by_name=True)
    except ValidationError as error:
        raise InputError(
            "\n".join(fault_lines(all_faults(error, Definition, None), loaded.document, loaded.name))
        ) from None
    canonical(resolved)  # refuses a definition too large to store
    late = warning_lines(((path, what, True) for path, what in advice_on_whole(resolved)), loaded.document, loaded.name)
    warnings = (*loaded.warnings, *resolution.warnings, *late)
    return LoadedWorkflow(resolved, loaded.source_text, warnings, loaded.document, loaded.name)


@dataclass(frozen=True)
class _File:
    """A file with steps: its name, the base of relative sources, its caller, and its nesting levels."""

    name: str
    document: yaml_nodes.Document
    at: Source
    used: str = ""
    levels: int = 0
    modules: int = 0

    def order(self, fault: tuple[Path, str]) -> tuple[int, int]:
        return self.document.place(fault[0])

    def place(self, path: Path) -> str:
        """`FILE:LINE:COLUMN: path` of a place, or its path if there is no file."""
        if not self.name:
            return dotted(path)
        line, column = self.document.place(path)
        return f"{self.name}:{line}:{column}: {dotted(path)}"


class _Resolution:
    def __init__(
        self, job: Definition, files: ModuleFiles, until: float, limits: ModuleLimits, ignore_unknown: bool
    ) -> None:
        self.warnings: list[str] = []
        self._until = until
        self._limits = limits
        self._job = job
        self._files = files
        self._faults: list[str] = []
        self._transient = True
        self._uses = 0
        self._ignore_unknown = ignore_unknown

    def raise_faults(self) -> None:
        more = len(self._faults) - MOST_SHOWN
        if more > 0:
            self._faults[MOST_SHOWN:] = [f"and {more} more faults"]
        if self._faults:
            raise InputError("\n".join(self._faults), transient=self._transient)

    def steps_of_file(self, steps: Sequence[Step], file: _File) -> tuple[Step, ...]:
        """Return the steps at the root of a file, with their modules. Their conditions are checked too."""
        for where, what in faulty_conditions(steps, ("steps",)):
            self._fault(file, where, what)
        return self.steps(steps, ("steps",), file)

    def steps(self, steps: Iterable[Step], path: Path, file: _File) -> tuple[Step, ...]:
        """Return the steps with their modules. The result is only valid if no fault was found."""
        return tuple(self._step(step, (*path, number), file) for number, step in enumerate(steps))

    def _step(self, step: Step, place: Path, file: _File) -> Step:
        changes: dict[str, object] = {}
        for name in ("steps", "catch", "finally_"):
            changes[name] = self.steps(getattr(step, name), (*place, name.rstrip("_")), file)
        for name in ("for_", "launch", "module"):
            part = getattr(step, name)
            if part is not None:
                inner = self.steps(part.steps, (*place, name.rstrip("_"), "steps"), file)
                changes[name] = part.model_copy(update={"steps": inner})
        if step.use is not None:
            changes |= {"use": None, "module": self._module(step, step.use, (*place, "use"), file)}
        return step.model_copy(update=changes)

    def _module(self, step: Step, use: StepUse, place: Path, file: _File) -> StepModule | None:
        found = self._find_file(use, (*place, "source"), file)
        if found is None:
            return None
        used = f" (used by {file.place(place)}{file.used})"
        inside = _File(
            found.name, yaml_nodes.Document(), found.source, used, file.levels + level(place), file.modules + 1
        )
        handed = self.steps(use.steps, (*place, "steps"), file)
        call = Call(self._job, step, use, handed, self._ignore_unknown)
        try:
            read = read_module(found.text, call, partial(self._between, file=inside), self._limits)
        except WrongArguments as error:
            for where, what in error.found:
                self._fault(file, (*place, *where), what)
            return None
        except ModuleFaults as error:
            self._transient = False
            self._faults += [f"{inside.name}:{line}:{column}: {what}{used}" for line, column, what in error.found]
            return None
        inside, module = replace(inside, document=read.document), read.module
        self._check_call(call, place, file, module)
        for where, what in sorted(self._between(module, inside), key=inside.order):
            self._fault(inside, where, what)
        odd = [*((where, what) for where, what, _ in read.warnings), *advice_on(module)]
        self.warnings += [f"{inside.place(where)}: warning: {what}{used}" for where, what in odd]
        return StepModule(
            source=use.source,
            commit=found.commit,
            inputs=call.arguments(module.inputs),
            outputs=tuple(output.key for output in module.outputs),
            export_env_as=use.export_env_as,
            steps=self.steps_of_file(module.steps, inside),
        )

    def _check_call(self, call: Call, place: Path, file: _File, module: Module) -> None:
        """Note faults and warnings of the step that uses a module."""
        for where, what in faults_of_call(self._job, call.use, module):
            self._fault(file, (*place, *where), what)
        for where, what in call.advice(module.inputs):
            self._warn(file, (*place, *where), what)
        if call.use.export_env_as and not module.outputs:
            self._warn(file, (*place, "exportEnvAs"), "has no effect: the module has no outputs")

    def _between(self, module: Module, file: _File) -> Iterator[tuple[Path, str]]:
        """Return disagreements within a module, and with the job."""
        return faults_in_steps(module.steps, ("steps",), self._job, file.levels)

    def _find_file(self, use: StepUse, place: Path, file: _File) -> FoundFile | None:
        self._uses += 1
        try:
            if self._uses > self._limits.uses:
                raise Unavailable(f"is one of more than {self._limits.uses} modules in all")
            if file.modules >= self._limits.depth:
                raise Unavailable(f"is nested in more than {self._limits.depth} modules")
            if time.monotonic() > self._until:
                raise Unavailable(
                    f"resolving all modules takes longer than {self._limits.within_s:.0f} s", transient=True
                )
            found = self._files.find(parse_source(use.source, file.at))
        except (InputError, Unavailable) as error:
            self._fault(file, place, str(error), transient=isinstance(error, Unavailable) and error.transient)
            return None
        if found.is_newest:
            self._warn(file, place, f"uses the newest commit, now {found.commit}; pin it with @TAG or @COMMIT")
        return found

    def _warn(self, file: _File, place: Path, what: str) -> None:
        self.warnings.append(f"{file.place(place)}: warning: {what}{file.used}")

    def _fault(self, file: _File, place: Path, what: str, *, transient: bool = False) -> None:
        self._transient = self._transient and transient
        self._faults.append(f"{file.place(place)}: {what}{file.used}")
