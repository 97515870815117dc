"""Modules: steps that a workflow can `use`, as their authors write them in module.yaml."""

from __future__ import annotations

from typing import Annotated

from deepgrid.workflow.base import Model
from deepgrid.workflow.fields import EMPTY_LIST, EnvName, Text
from deepgrid.workflow.running import JobResources
from deepgrid.workflow.steps import Step


class ModuleInput(Model):
    """A variable that the module reads."""

    key: EnvName
    """Its name."""
    description: Text
    """What it is for."""
    default: Text | None = None
    """Its value when the caller gives none; an input without one must be given."""


class ModuleOutput(Model):
    """A variable that the module writes to $DEEPSQUARE_ENV."""

    key: EnvName
    """Its name, without the caller's prefix."""
    description: Text
    """What it says."""


class Module(Model):
    """A module file."""

    name: Text
    """Name of the module."""
    description: Text
    """What it does."""
    minimum_resources: JobResources
    """What a job must have at least to use it; its figures for the whole job."""
    inputs: Annotated[tuple[ModuleInput, ...], EMPTY_LIST] = ()
    """What it reads."""
    outputs: Annotated[tuple[ModuleOutput, ...], EMPTY_LIST] = ()
    """What it writes."""
    steps: tuple[Step, ...]
    """What it does."""
