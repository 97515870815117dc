"""Reads an image's working folder from its registry.

Only registries that the provider allows are queried, with limits on time and size. Answers are cached
for a while. A registry that does not answer costs only a warning: the node later reads the folder from
the image itself.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic_core import from_json

from deepgrid.errors import ServiceError
from deepgrid.safe_http import UNCOMPRESSED, ExcessiveAnswer, read_answer
from deepgrid.sbatch.containers import DOCKER_HUB, Containers, Folders, Images
from deepgrid.workflow import Definition
from deepgrid.workflow.models import ContainerRun
from deepgrid.workflow.models.walk import steps_in

TIMEOUT_S = 10.0  # for all requests about one image
MAX_BYTES = 1 << 20  # per answer
KEPT_S = 600.0
MOST_KEPT = 1000

_HUB_HOST = "registry-1.docker.io"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')

logger = logging.getLogger(__name__)


class Registries:
    """Client of the allowed registries, with a cache. `mirrors` is as in `Containers`."""

    def __init__(
        self,
        allowed: Collection[str] = (),
        mirrors: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed, self._mirrors, self._clock = frozenset(allowed), mirrors or {}, clock
        self._kept: dict[ContainerRun, tuple[float, str | None]] = {}

    async def folders(self, job: Definition, containers: Containers) -> Folders:
        """Working folders of a job's images for Apptainer. Images without a known folder are left out."""
        steps = [step for _, step in steps_in(job.steps, ())]
        found: Folders = {}
        for image in Images(steps, containers):
            if image.form == "apptainer" and image.fetched:
                try:
                    folder = await self.working_folder(image.container)
                except ServiceError as error:
                    logger.warning("cannot read the working folder of an image, going on without: %s", error)
                else:
                    found.update({image.name: folder} if folder else {})
        return found

    async def working_folder(self, container: ContainerRun) -> str | None:
        """Return the image's WORKDIR. None if it has none, or if its registry is not allowed. Raises ServiceError."""
        name = container.registry or DOCKER_HUB
        if name not in self._allowed:
            return None
        until, folder = self._kept.get(container, (0.0, None))
        if self._clock() < until:
            return folder
        try:
            async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient(headers=UNCOMPRESSED, timeout=TIMEOUT_S) as client:
                config = await _Conversation(client, self._address(name), container).configuration()
        except _Unusable as answer:
            why = str(answer)
        except (TimeoutError, httpx.TimeoutException):
            why = f"it did not answer within {TIMEOUT_S:.0f} seconds"
        except httpx.HTTPError as error:
            why = f"it could not be reached ({type(error).__name__})"
        except ExcessiveAnswer as answer:
            why = f"its answer {answer}"
        except (ValueError, KeyError, TypeError, AttributeError):
            why = "its answer does not look like a registry's"
        else:
            return self._keep(container, config)
        raise ServiceError(f"The registry {name} does not describe {container.image}: {why}.")

    def _keep(self, container: ContainerRun, config: dict[str, Any]) -> str | None:
        inner = config.get("config")
        folder = inner.get("WorkingDir") if isinstance(inner, dict) else None
        folder = folder if isinstance(folder, str) and folder.startswith("/") and "\0" not in folder else None
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[container] = (self._clock() + KEPT_S, folder)
        return folder

    def _address(self, name: str) -> str:
        return self._mirrors.get(name) or f"https://{_HUB_HOST if name == DOCKER_HUB else name}"


class _Unusable(Exception):
    """The answer cannot be used. The text says why, as the end of a sentence."""


class _Conversation:
    """Requests about one image, with the token from the registry."""

    def __init__(self, client: httpx.AsyncClient, address: str, container: ContainerRun) -> None:
        name, _, digest = container.image.partition("@")
        path, _, tag = name.partition(":")
        if "/" not in path and DOCKER_HUB in (container.registry or DOCKER_HUB):
            path = f"library/{path}"
        self._client, self._base, self._tag = client, f"{address}/v2/{path}", digest or tag or "latest"
        self._account: httpx.Auth | None = None
        if container.registry and container.username and container.password:
            self._account = httpx.BasicAuth(container.username, container.password)
        self._headers = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}

    async def configuration(self) -> dict[str, Any]:
        """Return the image's configuration, for linux/amd64 if the image has several platforms."""
        manifest = await self._get(f"manifests/{self._tag}")
        if "manifests" in manifest:
            wanted = {"os": "linux", "architecture": "amd64"}
            fitting = [m for m in manifest["manifests"] if wanted.items() <= (m.get("platform") or {}).items()]
            if not fitting:
                raise _Unusable("it has the image for other machines only")
            manifest = await self._get(f"manifests/{fitting[0]['digest']}")
        return await self._get(f"blobs/{manifest['config']['digest']}")

    async def _get(self, what: str) -> dict[str, Any]:
        url = f"{self._base}/{what}"
        status, headers, content = await self._ask(url, self._headers, None)
        if status == 401:
            account = await self._authenticate(headers.get("WWW-Authenticate", ""))
            status, headers, content = await self._ask(url, self._headers, account)
        if status in (301, 302, 303, 307, 308):  # blobs may be on another host, which does not get the token
            target = headers.get("Location", "")
            if urlsplit(target).scheme != "https":
                raise _Unusable("it redirects to an address without TLS")
            status, headers, content = await self._ask(target, {}, None)
        if status != 200:
            raise _Unusable(f"it answered with HTTP status {status}")
        found = from_json(content)
        if not isinstance(found, dict):
            raise _Unusable("its answer is not a JSON object")
        return found

    async def _authenticate(self, challenge: str) -> httpx.Auth | None:
        """Return the Authorization header that a registry demands: the account, or a token from an address with TLS."""
        if challenge.lower().startswith("basic"):
            return self._account
        asked = dict(_CHALLENGE.findall(challenge))
        realm = asked.pop("realm", "")
        if urlsplit(realm).scheme != "https" and not self._base.startswith("http://"):
            raise _Unusable("it demands a token from an address without TLS")
        status, _, content = await self._ask(f"{realm}?{httpx.QueryParams(asked)}", {}, self._account)
        if status != 200:
            raise _Unusable(f"it refuses a token (HTTP status {status})")
        answer = from_json(content)
        self._headers["Authorization"] = f"Bearer {answer.get('token') or answer['access_token']}"
        return None

    async def _ask(
        self, url: str, headers: dict[str, str], account: httpx.Auth | None
    ) -> tuple[int, httpx.Headers, bytes]:
        async with self._client.stream("GET", url, headers=headers, auth=account or httpx.USE_CLIENT_DEFAULT) as answer:
            return answer.status_code, answer.headers, await read_answer(answer, MAX_BYTES)
