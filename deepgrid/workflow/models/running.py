"""One command of a step, its container, and the resources that it uses."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Env, Model
from deepgrid.workflow.models.fields import (
    EMPTY_LIST,
    MOST_CPUS,
    MOST_MEM_MB,
    SECRET,
    AbsolutePath,
    Count,
    CountOrNone,
    Flag,
    Hostname,
    Image,
    Ip,
    Megabytes,
    Text,
    Truth,
    UserId,
)
from deepgrid.workflow.models.network import NetworkInterface


class Mount(Model):
    """A folder of the node inside the container (outdated)."""

    host_dir: AbsolutePath
    """Folder on the node."""
    container_dir: AbsolutePath
    """Where it appears in the container."""
    options: Literal["rw", "ro", ""] | None = None
    """rw (may be written) or ro."""


class ContainerRun(Model):
    """The container that a step runs in, with Enroot by default."""

    OUTDATED = {"mounts": "the storage volumes, which are in every container"}  # noqa: RUF012 - as declared in Model

    image: Image
    """name:tag or name@sha256:digest in the registry, or a path below the job's storage, like /input/image.sif."""
    registry: Hostname | None = None
    """Host name of the registry; Docker Hub by default."""
    username: Text | None = Field(default=None, repr=False)
    """Account at the registry; used with registry and password."""
    password: Annotated[Text | None, SECRET] = Field(default=None, repr=False)
    """Password of that account."""
    apptainer: Flag = False
    """Use Apptainer."""
    deepsquare_hosted: Flag = False
    """Take the image from the provider's software folder, with Apptainer."""
    x11: Flag = Field(default=False, alias="x11")
    """Show the node's X11 sockets, read only."""
    mount_home: Flag = False
    """Mount the home folder."""
    read_only_root_fs: Flag = Field(default=False, alias="readOnlyRootFS")
    """Forbid writing to the image's own files; storage volumes stay writable."""
    mounts: Annotated[tuple[Mount, ...], EMPTY_LIST] = ()
    """Outdated: use the storage volumes."""

    @model_validator(mode="after")
    def _hosted_is_named(self) -> ContainerRun:
        if self.deepsquare_hosted and self.image.startswith("/"):
            raise PydanticCustomError("one_of", "is deepsquareHosted, so image must be a name, not a path")
        return self


class _Figures(Model):
    """Sums over tasks; memory in MB per CPU."""

    tasks: Count
    """Processes that run at the same time."""
    cpus_per_task: Count
    """CPUs of each task."""
    mem_per_cpu: Megabytes
    """MB of memory for each CPU."""

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    @property
    def mem_mb(self) -> int:
        return self.cpus * self.mem_per_cpu


class JobResources(_Figures):
    """Resources of the whole job, which the customer pays for."""

    gpus: CountOrNone
    """GPUs of the whole job, not of each task."""

    @model_validator(mode="after")
    def _is_no_larger_than_any_cluster(self) -> JobResources:
        for what, wanted, most in (("CPUs", self.cpus, MOST_CPUS), ("MB of memory", self.mem_mb, MOST_MEM_MB)):
            if wanted > most:
                raise PydanticCustomError("too_large", f"asks for {wanted} {what} in all, more than any cluster has")
        return self


class StepRunResources(Model):
    """The part of the job's resources that one step uses."""

    tasks: Count | None = None
    """Processes that run the command at the same time; 1 by default."""
    cpus_per_task: Count | None = None
    """CPUs of each task; the job's figure by default."""
    mem_per_cpu: Megabytes | None = None
    """MB of memory for each CPU; the job's figure by default."""
    gpus_per_task: CountOrNone | None = None
    """GPUs of each task; none by default."""


class ResolvedResources(_Figures):
    """Resources of one step, with all defaults filled in."""

    gpus_per_task: CountOrNone

    @property
    def gpus(self) -> int:
        return self.tasks * self.gpus_per_task


class StepRun(Model):
    """One command, run by a shell in `resources.tasks` processes."""

    command: Text = Field(repr=False)
    """Shell text. In a container, an empty one starts the image's own entry point."""
    shell: Literal["/bin/bash", "/bin/ash", "/bin/sh", "ENTRYPOINT"] | None = None
    """Shell that runs the command, /bin/sh by default. ENTRYPOINT passes the command to the image's entry point."""
    resources: StepRunResources | None = None
    """The part of the job's resources that the step uses."""
    container: ContainerRun | None = None
    """The container to run in. By default the command runs on the node itself."""
    network: Literal["host", "slirp4netns", "pasta"] | None = None
    """host by default, or a network namespace per task, which can reach the Internet but not be reached."""
    dns: Annotated[tuple[Ip, ...], EMPTY_LIST] = ()
    """Name servers, in a network namespace."""
    custom_network_interfaces: Annotated[tuple[NetworkInterface, ...], EMPTY_LIST] = ()
    """Further interfaces, in a network namespace."""
    env: Env = ()
    """Variables of this step alone. They override all others."""
    map_uid: UserId | None = None
    """User id of the command inside a user namespace. It gives no further rights."""
    map_gid: UserId | None = None
    """Group id inside the user namespace."""
    work_dir: AbsolutePath | None = None
    """Folder to run in, created if it is missing; the job's storage folder by default."""
    disable_cpu_binding: Flag = False
    """Do not bind tasks to CPUs."""
    mpi: Literal["none", "pmix_v4", "pmi2"] | None = None
    """How MPI programs find each other; the cluster's default if left out."""
    kill_on_bad_exit: Truth | None = None
    """End all tasks as soon as one fails. By default with `mpi` (other than none); otherwise the cluster decides."""

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
        """Whether the image's entry point runs, with the command's words as its arguments."""
        return self.container is not None and (self.shell == "ENTRYPOINT" or not self.command)

    @property
    def apart(self) -> bool:
        """Whether each task has its own network namespace."""
        return self.network not in (None, "host")

    @property
    def kills_on_bad_exit(self) -> bool | None:
        """Whether a failed task ends the others; None for the cluster's default."""
        by_mpi = True if self.mpi not in (None, "none") else None
        return by_mpi if self.kill_on_bad_exit is None else self.kill_on_bad_exit

    @property
    def mapped(self) -> bool:
        """Whether the command runs with another user id or group id."""
        return self.map_uid is not None or self.map_gid is not None

    def resources_in(self, job: JobResources) -> ResolvedResources:
        """Return the step's figures, with defaults from the job."""
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
