"""One command of a step, and the resources that it takes."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.base import Env, Model
from deepgrid.workflow.container import ContainerRun
from deepgrid.workflow.fields import EMPTY_LIST, AbsolutePath, Count, CountOrNone, Flag, Ip, Text, UserId
from deepgrid.workflow.network import NetworkInterface


class _Figures(Model):
    """Sums over tasks; memory in MB per CPU."""

    tasks: Count
    """Processes that run at the same time."""
    cpus_per_task: Count
    """CPUs of each task."""
    mem_per_cpu: Count
    """MB of memory for each CPU."""

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    @property
    def mem_mb(self) -> int:
        return self.cpus * self.mem_per_cpu


class JobResources(_Figures):
    """What the whole job gets, and pays for."""

    gpus: CountOrNone
    """GPUs of the whole job, not of each task."""


class StepRunResources(Model):
    """What one step takes of the job's resources."""

    tasks: Count | None = None
    """Processes that run the command at the same time; 1 by default."""
    cpus_per_task: Count | None = None
    """CPUs of each task; the job's figure by default."""
    mem_per_cpu: Count | None = None
    """MB of memory for each CPU; the job's figure by default."""
    gpus_per_task: CountOrNone | None = None
    """GPUs of each task; none by default."""


class ResolvedResources(_Figures):
    """Figures of one step with nothing left open."""

    gpus_per_task: CountOrNone

    @property
    def gpus(self) -> int:
        return self.tasks * self.gpus_per_task


class StepRun(Model):
    """One command, run by a shell in `resources.tasks` processes."""

    command: Text = Field(repr=False)
    """Shell text. In a container, an empty one starts the image's own entry point."""
    shell: Literal["/bin/bash", "/bin/ash", "/bin/sh", "ENTRYPOINT"] | None = None
    """What runs the command, /bin/sh by default; ENTRYPOINT hands the command's words to the image's entry point."""
    resources: StepRunResources | None = None
    """What the step takes of the job's resources."""
    container: ContainerRun | None = None
    """The container to run in; on the node itself by default."""
    network: Literal["host", "slirp4netns", "pasta"] | None = None
    """host by default, or a network namespace of each task's own, with a way out to the Internet and none in."""
    dns: Annotated[tuple[Ip, ...], EMPTY_LIST] = ()
    """Name servers, in a network namespace."""
    custom_network_interfaces: Annotated[tuple[NetworkInterface, ...], EMPTY_LIST] = ()
    """Further interfaces, in a network namespace."""
    env: Env = ()
    """Variables of this step alone; they win over all others."""
    map_uid: UserId | None = None
    """User id that the command sees itself as, in a user namespace; gives no further rights."""
    map_gid: UserId | None = None
    """Group id, likewise."""
    work_dir: AbsolutePath | None = None
    """Folder to run in, made when it is not there; the job's storage folder by default."""
    disable_cpu_binding: Flag = False
    """Do not bind tasks to CPUs."""
    mpi: Literal["none", "pmix_v4", "pmi2"] | None = None
    """How MPI programs find each other; the cluster's default otherwise."""

    @model_validator(mode="after")
    def _goes_together(self) -> StepRun:
        if self.shell == "ENTRYPOINT" and self.container is None:
            raise PydanticCustomError("needs", "has the shell ENTRYPOINT, which needs a container")
        if self.shell == "ENTRYPOINT" and not _is_words(self.command):
            raise PydanticCustomError("needs", "has the shell ENTRYPOINT, so quotes in command must be closed")
        if self.network in (None, "host"):
            for name, value in (("dns", self.dns), ("customNetworkInterfaces", self.custom_network_interfaces)):
                if value:
                    raise PydanticCustomError("needs", f"has {name}, which needs network: slirp4netns or pasta")
        return self

    @property
    def starts_entry_point(self) -> bool:
        """Whether the image's own program runs, with the command's words as its arguments if there are any."""
        return self.container is not None and (self.shell == "ENTRYPOINT" or not self.command)

    @property
    def apart(self) -> bool:
        """Whether each task has a network of its own."""
        return self.network not in (None, "host")

    @property
    def mapped(self) -> bool:
        """Whether the command sees itself as somebody else."""
        return self.map_uid is not None or self.map_gid is not None

    def resources_in(self, job: JobResources) -> ResolvedResources:
        """This step's figures, with the absent ones taken from the job."""
        own = self.resources or StepRunResources()
        return ResolvedResources(
            tasks=own.tasks or 1,
            cpus_per_task=own.cpus_per_task or job.cpus_per_task,
            mem_per_cpu=own.mem_per_cpu or job.mem_per_cpu,
            gpus_per_task=own.gpus_per_task or 0,
        )


def _is_words(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True
