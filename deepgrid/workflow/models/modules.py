"""The module file `module.yaml`: steps that a workflow can `use`."""

from __future__ import annotations

from typing import Annotated

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import EMPTY_LIST, EnvName, Text
from deepgrid.workflow.models.running import JobResources
from deepgrid.workflow.models.steps import Step


class ModuleInput(Model):
    """A variable that the module reads."""

    key: EnvName
    """Its name."""
    description: Text | None = None
    """Its purpose."""
    default: Text | None = None
    """Its value if the caller gives none. Without a default, the variable is then unset."""


class ModuleOutput(Model):
    """A variable that the module writes to $DEEPSQUARE_ENV."""

    key: EnvName
    """Its name, without the caller's prefix."""
    description: Text | None = None
    """Its meaning."""


class Module(Model):
    """A module file."""

    name: Text
    """Name of the module."""
    description: Text | None = None
    """Its purpose."""
    minimum_resources: JobResources
    """Least resources of a job that uses the module; figures of the whole job."""
    inputs: Annotated[tuple[ModuleInput, ...], EMPTY_LIST] = ()
    """Variables that it reads."""
    outputs: Annotated[tuple[ModuleOutput, ...], EMPTY_LIST] = ()
    """Variables that it writes."""
    steps: tuple[Step, ...]
    """Its steps, one after another."""
