"""Container images that steps run in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import EMPTY_LIST, SECRET, AbsolutePath, Flag, Hostname, Image, Text


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
    """name:tag in the registry, or the absolute path of a file below the job's storage, like /input/image.sif."""
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
