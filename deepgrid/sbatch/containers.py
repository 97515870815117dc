"""Chooses how each step's container runs: with Apptainer, Enroot, or Enroot through Pyxis."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from deepgrid.errors import ConfigurationError
from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import ContainerRun, Step, StepRun

Form = Literal["apptainer", "enroot", "pyxis"]

Folders = dict[tuple[str | None, str], str]
"""Working folders of images, by registry and name."""

DOCKER_HUB = "docker.io"
_MIRROR = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Containers:
    """Configuration of a cluster's containers. `apptainer`: the program's name or path on the nodes.
    `hosted`: the folder of the provider's own images.
    `enroot`: whether nodes have Enroot. Without it, Apptainer runs all containers.
    `pyxis`: whether srun has this plugin.
    `local_images`: files or folders on the nodes of images that are not downloaded, by name, such as
        {"ubuntu:latest": "/opt/images/ubuntu.sif"}. Apptainer takes SIF files and folders, Enroot squashfs files.
    `mirrors`: addresses of registries that the cluster reaches under another name, such as
        {"docker.io": "https://mirror.example.org"}. A mirror without TLS starts with http://.
    """

    apptainer: str = "apptainer"
    hosted: str = "/opt/software"
    enroot: bool = True
    pyxis: bool = False
    local_images: Mapping[str, str] = field(default_factory=dict)
    mirrors: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.apptainer or "\0" in self.apptainer:
            raise ConfigurationError("The name of the Apptainer program must not be empty.")
        if not self.hosted.startswith("/") or "\0" in self.hosted:
            raise ConfigurationError(f"The folder of hosted images must be an absolute path, not {self.hosted!r}.")
        for name, path in self.local_images.items():
            if not path.startswith("/") or "\0" in path:
                raise ConfigurationError(f"The local image {name} must have an absolute path, not {path!r}.")
        for name, address in self.mirrors.items():
            if not _MIRROR.fullmatch(address):
                raise ConfigurationError(f"The mirror of {name} must be https://HOST[:PORT] or http://HOST[:PORT].")

    def mirror_of(self, container: ContainerRun) -> str | None:
        """Return the address to use instead of the container's registry."""
        return self.mirrors.get(container.registry or DOCKER_HUB)

    def local_image(self, container: ContainerRun) -> str | None:
        """Return the path of the container's image on the nodes, if it is a local one."""
        if DOCKER_HUB not in (container.registry or DOCKER_HUB) or container.deepsquare_hosted:
            return None
        wanted = _hub_name(container.image)
        return next((path for name, path in self.local_images.items() if _hub_name(name) == wanted), None)

    def form_of(self, run: StepRun) -> Form:
        """Return the program that runs a step's container."""
        assert run.container is not None
        if run.container.apptainer or run.container.deepsquare_hosted or not self.enroot:
            return "apptainer"
        return "pyxis" if self.pyxis and _fits_pyxis(run) else "enroot"


def _hub_name(image: str) -> str:
    """Return the whole name of an image at Docker Hub: `library/ubuntu:latest` for `ubuntu`."""
    path, colon, tag = image.partition(":")
    return f"{path if '/' in path else f'library/{path}'}:{tag if colon else 'latest'}"


def _fits_pyxis(run: StepRun) -> bool:
    """Return whether Pyxis can run the step.

    It enters the container first, and separates mounts by commas and colons.
    """
    assert run.container is not None
    paths = [path for mount in run.container.mounts for path in (mount.host_dir, mount.container_dir)]
    return not run.mapped and not run.apart and not any(mark in path for path in paths for mark in ",:")


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a job. Steps with the same image share its download. `number` identifies it."""

    number: int
    form: Form
    container: ContainerRun
    mirror: str | None = None
    local: str | None = None  # its path, if the nodes have it
    folder: str | None = None  # its working folder, if known

    @property
    def name(self) -> tuple[str | None, str]:
        return self.container.registry, self.container.image

    @property
    def fetched(self) -> bool:
        """Whether the job itself downloads the image before the step starts."""
        if self.local or self.container.image.startswith("/") or self.container.deepsquare_hosted:
            return False
        return self.form != "pyxis" or self.with_account or self.mirror is not None  # otherwise Pyxis downloads it

    @property
    def is_file(self) -> bool:
        """Whether the step gets the image as a path. Otherwise Pyxis downloads it."""
        return self.form != "pyxis" or self.fetched or self.local is not None or self.container.image.startswith("/")

    @property
    def with_account(self) -> bool:
        """Whether the registry gets credentials."""
        return bool(self.container.registry and self.container.username and self.container.password)

    @property
    def plain_http(self) -> bool:
        return bool(self.mirror and self.mirror.startswith("http://"))

    @property
    def registry(self) -> str | None:
        """Host of the registry, with its port if it has one; None for the program's default, Docker Hub."""
        return self.mirror.split("//")[1] if self.mirror else self.container.registry

    @property
    def reference(self) -> str:
        """The image's address in the format of the downloading program; without `docker://` for srun."""
        name, _, digest = self.container.image.partition("@")
        if digest:  # the digest alone names the image; Enroot takes it in place of a tag
            name = name.partition(":")[0] + ("@" if self.form == "apptainer" else ":") + digest
        hub = DOCKER_HUB in (self.container.registry or (DOCKER_HUB if self.mirror else ""))
        if hub and "/" not in name:
            name = f"library/{name}"
        between = "/" if self.form == "apptainer" else "#"
        whole = f"{self.registry}{between}{name}" if self.registry else name
        return whole if self.form == "pyxis" and not self.fetched else f"docker://{whole}"

    @property
    def credentials(self) -> str:
        """The line of Enroot's credentials file, quoted as in netrc."""
        host = (self.registry or "").partition(":")[0]
        return f"machine {host} login {_netrc(self.container.username)} password {_netrc(self.container.password)}"


def clean(path: str) -> str:
    """Return the path as absolute, without `..`, so that it cannot leave the folder to which it is appended."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


def place_of(container: ContainerRun, containers: Containers) -> Quoted:
    """Return the path of an image: below the job's storage, or on the nodes."""
    if local := containers.local_image(container):
        return quote(local)
    if container.image.startswith("/"):
        return Quoted('"$__dg_storage"' + quote(clean(container.image)))
    named = f"{container.registry}/{container.image}" if container.registry else container.image
    return quote(containers.hosted.rstrip("/") + clean(named))


class Images:
    """The distinct images of a job's steps, in the order of the steps."""

    def __init__(self, steps: Sequence[Step], containers: Containers, folders: Folders | None = None) -> None:
        self._found: dict[object, Image] = {}
        self.containers = containers
        for step in steps:
            c = step.run.container if step.run else None
            if step.run and c:
                key, folder = self._key(step.run), (folders or {}).get((c.registry, c.image))
                mirror, local = containers.mirror_of(c), containers.local_image(c)
                image = Image(len(self._found) + 1, key[0], c, mirror=mirror, local=local, folder=folder)
                self._found.setdefault(key, image)

    def __iter__(self) -> Iterator[Image]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def of(self, run: StepRun) -> Image:
        return self._found[self._key(run)]

    def starts_with_srun(self, run: StepRun) -> bool:
        """Return whether srun itself starts the step's container."""
        return run.container is not None and self.of(run).form == "pyxis"

    def uses(self, *forms: Form) -> bool:
        """Return whether any step's container runs in one of these forms."""
        return any(image.form in forms for image in self)

    def _key(self, run: StepRun) -> tuple[Form, object]:
        c = run.container
        assert c is not None
        form = self.containers.form_of(run)
        return form, (c.image, c.registry, c.username, c.password, c.deepsquare_hosted)


def _netrc(text: str | None) -> str:
    marks = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(marks.get(char, char) for char in text or "") + '"'
