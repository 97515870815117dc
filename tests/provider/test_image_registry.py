"""The supervisor queries images at real local registries: an open one, one with accounts, and a missing one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from deepgrid.errors import ServiceError
from deepgrid.provider.shared.image_registry import MAX_BYTES, Registries
from deepgrid.sbatch import Containers, StoragePaths, render
from deepgrid.workflow import parse
from deepgrid.workflow.models import ContainerRun
from tests.sbatch.images import PASSWORD, USER, make_image, registry

OPEN = ContainerRun(image="some/image:v1", registry="open.example.org", apptainer=True)
PRIVATE = ContainerRun(image="some/image:v1", registry="private.example.org", username=USER, password=PASSWORD)
GONE = ContainerRun(image="some/image:v1", registry="gone.example.org")
LARGE = ContainerRun(image="some/image:v1", registry="large.example.org")
HUB = ContainerRun(image="busybox:v1")


class Large(BaseHTTPRequestHandler):
    """Answers with more than a registry should."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * (MAX_BYTES + 1))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("registry")
    layout = make_image(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Large)
    Thread(target=server.serve_forever, daemon=True).start()
    with registry(folder, layout) as everybodys, registry(folder, layout, private=True) as private:
        for name in ("some/image:v1", "library/busybox:v1"):
            everybodys.put(name)
        private.put("some/image:v1")
        yield {
            "open.example.org": f"http://{everybodys.address}", "docker.io": f"http://{everybodys.address}",
            "private.example.org": f"http://{private.address}", "gone.example.org": "http://localhost:1",
            "large.example.org": f"http://127.0.0.1:{server.server_port}",
        }  # fmt: skip
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("container", [OPEN, PRIVATE, HUB], ids=["open", "private", "hub"])
async def test_an_images_folder_is_read_from_its_registry(container: ContainerRun, mirrors: dict[str, str]) -> None:
    assert await Registries(mirrors, mirrors).working_folder(container) == "/srv/app"


async def test_a_registry_that_is_not_allowed_is_not_asked(mirrors: dict[str, str]) -> None:
    assert await Registries().working_folder(GONE) is None
    assert await Registries(["open.example.org"], mirrors).working_folder(GONE) is None


ABSENT = OPEN.model_copy(update={"image": "some/other"})
REFUSED = PRIVATE.model_copy(update={"password": "x"})


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (GONE, r"it could not be reached \(ConnectError\)"), (LARGE, f"its answer has more than {MAX_BYTES} bytes"),
        (ABSENT, "it answered with HTTP status 404"), (REFUSED, "HTTP status 401"),
    ],
    ids=["gone", "large", "absent", "refused"],
)  # fmt: skip
async def test_failures_are_reported_without_secrets(
    container: ContainerRun, why: str, mirrors: dict[str, str]
) -> None:
    with pytest.raises(ServiceError, match=rf"The registry .* does not describe some/.*: .*{why}") as caught:
        await Registries(mirrors, mirrors).working_folder(container)
    assert caught.value.transient
    assert PASSWORD not in str(caught.value)


async def test_an_answer_is_kept_for_a_while(mirrors: dict[str, str]) -> None:
    now = 0.0
    where = dict(mirrors)
    registries = Registries(mirrors, where, lambda: now)
    assert await registries.working_folder(OPEN) == "/srv/app"
    where["open.example.org"] = "http://localhost:1"
    assert await registries.working_folder(OPEN) == "/srv/app"
    now = 10_000.0
    with pytest.raises(ServiceError):
        await registries.working_folder(OPEN)


async def test_a_silent_registry_is_a_warning(mirrors: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    container = "{{image: 'some/image:v1', registry: {}.example.org, apptainer: true}}"
    text = "".join(f"- {{run: {{command: x, container: {container.format(name)}}}}}\n" for name in ("open", "gone"))
    job = parse(f"resources: {{tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}}\nsteps:\n{text}", "job").model
    containers = Containers(mirrors=mirrors)
    with caplog.at_level(logging.WARNING):
        folders = await Registries(mirrors, mirrors).folders(job, containers)
    assert folders == {("open.example.org", "some/image:v1"): "/srv/app"}
    assert "gone.example.org does not describe" in caplog.text
    script = render(job, StoragePaths(), containers, folders)
    assert "  __dg_folder=/srv/app\n" in script
    assert script.count("\n  image_folder\n") == 1
