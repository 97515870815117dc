"""Container images for tests: Apptainer, and a private registry on this machine with one small image.

The image consists of busybox. Its entry point prints its folder and its arguments, one per line.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import httpx
import pytest

from deepgrid.sbatch import Containers

ROOT = Path(__file__).parents[2]
ENTRY = """#!/bin/sh
echo "entry point in $PWD"
for word; do printf '<%s>\\n' "$word"; done
"""
USER, PASSWORD = "ada", 'it\'s "pass" $word\\'
REGISTRY = """version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {root}/{kind}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
AUTH = "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}\n"


@pytest.fixture(scope="session")
def images(state_folder: Path) -> Path:
    folder = state_folder / "images"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def containers(images: Path) -> Iterator[Containers]:
    """Apptainer, local registries in place of the examples' registries, and a folder with an image of the provider."""
    program, layout = apptainer_in(images), make_image(images)
    with registry(images, layout) as everybodys, registry(images, layout, private=True) as private:
        everybodys.put("library/busybox:1.36")
        everybodys.put("tools/greeter:v1")
        private.put("secret/image:v1")
        pull = [program, "--silent", "pull", images / "image.sif", f"docker://{everybodys.address}/tools/greeter:v1"]
        subprocess.run(pull, check=True, capture_output=True, env={**os.environ, "APPTAINER_NOHTTPS": "1"})
        hosted = images / "hosted" / "registry.example.org" / "tools"
        hosted.mkdir(parents=True)
        shutil.copy(images / "image.sif", hosted / "greeter:v1")
        mirrors = {
            "docker.io": f"http://{everybodys.address}", "registry.example.org": f"http://{everybodys.address}",
            "private.example.org": f"http://{private.address}", "gone.example.org": "http://localhost:1",
        }  # fmt: skip
        yield Containers(apptainer=str(program), hosted=str(images / "hosted"), mirrors=mirrors)


def apptainer_in(folder: Path) -> Path:
    """Return an Apptainer that any account may run. Skips the test if there is none."""
    if found := shutil.which("apptainer"):
        return Path(found)
    if not (ROOT / ".grid" / "apptainer" / "debs" / "complete").exists():
        pytest.skip("Apptainer is not installed and could not be fetched (./run test says why)")
    subprocess.run([ROOT / "tools" / "install-apptainer", folder / "apptainer"], check=True, capture_output=True)
    return folder / "apptainer" / "bin" / "apptainer"


def make_image(folder: Path) -> Path:
    """Return an OCI layout with one image, tagged v1."""
    layout, bundle = folder / "layout", folder / "bundle"
    umoci("init", "--layout", layout)
    umoci("new", "--image", f"{layout}:v1")
    umoci("unpack", "--rootless", "--image", f"{layout}:v1", bundle)
    root = bundle / "rootfs"
    for name in ("bin", "etc", "tmp", "srv/app"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in subprocess.check_output([busybox, "--list"], text=True).split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    (root / "bin" / "entry").write_text(ENTRY)
    (root / "bin" / "entry").chmod(0o755)
    (root / "srv" / "app" / "greeting").write_text("hello from the image\n")
    umoci("repack", "--image", f"{layout}:v1", bundle)
    umoci(
        "config", "--image", f"{layout}:v1", "--config.entrypoint=/bin/entry", "--config.cmd=by default",
        "--config.workingdir=/srv/app", "--config.env=PATH=/bin", "--config.env=FROM=the image",
    )  # fmt: skip
    return layout


def umoci(*argv: object) -> None:
    subprocess.run(["umoci", *map(str, argv)], check=True, capture_output=True)


@dataclass(frozen=True)
class Registry:
    """A registry that serves the image under the names given to `put`."""

    address: str
    layout: Path
    account: tuple[str, ...] = ()

    def put(self, name: str) -> None:
        """Push the image as `owner/name:tag`."""
        subprocess.run(
            ["skopeo", "copy", "--quiet", "--format", "v2s2", "--dest-tls-verify=false", *self.account,
             f"oci:{self.layout}:v1", f"docker://{self.address}/{name}"],
            check=True, capture_output=True,
        )  # fmt: skip


@contextmanager
def registry(folder: Path, layout: Path, *, private: bool = False) -> Iterator[Registry]:
    """Yield a running registry. A private one has one account."""
    kind = "private" if private else "open"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = REGISTRY.format(root=folder, kind=kind, port=port)
    if private:
        line = f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n"
        (folder / "htpasswd").write_text(line)
        text += AUTH.format(root=folder)
    settings = folder / f"{kind}.yml"
    settings.write_text(text)
    daemon = subprocess.Popen(
        ["docker-registry", "serve", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"localhost:{port}"
        deadline = time.monotonic() + 60
        while not _answers(address):
            assert daemon.poll() is None, "the registry has ended"
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.05)
        yield Registry(address, layout, ("--dest-creds", f"{USER}:{PASSWORD}") if private else ())
    finally:
        daemon.terminate()
        daemon.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"http://{address}/v2/").status_code in (200, 401)
    except httpx.TransportError:
        return False
