"""The roots of files: the job of a workflow file, and the module of a module file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Env, Model
from deepgrid.workflow.models.fields import EMPTY_LIST, EnvName, Flag, Mode, Text
from deepgrid.workflow.models.network import VirtualNetwork
from deepgrid.workflow.models.rules import MOST_STEPS, faults_in
from deepgrid.workflow.models.running import JobResources
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.models.transport import PrivateFiles, TransportData, misplaced_files, misplaced_private_files


class Definition(Model):
    """A job definition: the job's resources, and the steps that it runs one after another."""

    resources: JobResources
    """Tasks, CPUs, memory and GPUs of the whole job."""
    enable_logging: Flag = False
    """Send the job's output to the grid, so that `dps job logs` shows it."""
    env: Env = ()
    """Environment variables of all steps."""
    input: TransportData | None = None
    """Copied to $DEEPSQUARE_INPUT before the first step."""
    input_mode: Mode | None = None
    """Rights of all input files: octal with a leading zero (0755), or the decimal form of it (493)."""
    output: TransportData | None = None
    """Where $DEEPSQUARE_OUTPUT is copied after the last step, even if a step failed."""
    private_files: PrivateFiles | None = None
    """Files that are encrypted before they leave for the grid, and who can decrypt them."""
    continuous_output_sync: Flag = False
    """Also copy the output every few seconds while the job runs; with S3 only."""
    steps: tuple[Step, ...] = Field(max_length=MOST_STEPS)
    """What the job does, one step after another."""
    virtual_networks: Annotated[tuple[VirtualNetwork, ...], EMPTY_LIST] = ()
    """Networks inside the job that steps can join."""

    @model_validator(mode="after")
    def _goes_together(self) -> Definition:
        faults = [*faults_in(self), *misplaced_files(self.output)]
        if self.private_files is not None:
            faults += misplaced_private_files(self.input, self.output)
        if faults:
            raise PydanticCustomError("located", "parts of the job do not go together", {"faults": faults})
        return self


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
