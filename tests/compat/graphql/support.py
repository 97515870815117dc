"""Requests as existing clients send them, and jobs as they describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.services.admission import Limits, Rate
from tests.services.support import Grid

MANY = Rate(10_000, 10_000)
UNLIMITED = Limits(strangers_per_address=MANY)
UNLIMITED_COMPAT = CompatSettings(limits=CompatLimits(submissions_per_address=MANY))
SUBMIT = "mutation Submit($job: Job!) { submit(job: $job) }"
VALIDATE = "mutation V($module: Module!) { validate(module: $module) }"
JSON = {"Content-Type": "application/json"}
RESOURCES = {"tasks": 2, "cpusPerTask": 2, "memPerCpu": 128, "gpus": 1}
KEY = "A" * 42 + "E="
HTTP = {"url": "https://x.example/a?b=c"}
S3 = {
    "region": "r", "bucketUrl": "s3://bucket", "path": "/", "accessKeyId": "id", "secretAccessKey": "s3cret",
    "endpointUrl": "https://s3.example", "deleteSync": True,
}  # fmt: skip
RUN = {
    "command": "echo hi", "shell": "/bin/bash", "network": "slirp4netns", "dns": ["1.1.1.1"], "mapUid": 0, "mapGid": 0,
    "resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpusPerTask": 0},
    "workDir": "/tmp", "disableCpuBinding": True, "mpi": "pmi2", "killOnBadExit": True,
    "env": [{"key": "A", "value": "it's"}],
    "container": {
        "image": "library/ubuntu:latest", "registry": "registry.example", "username": "u", "password": "p",
        "apptainer": True, "deepsquareHosted": True, "x11": True, "mountHome": True, "readOnlyRootFS": True,
        "mounts": [{"hostDir": "/a", "containerDir": "/b", "options": "ro"}],
    },
    "customNetworkInterfaces": [
        {"vnet": {"name": "net", "address": "10.0.0.2/24"}},
        {"bore": {"boreAddress": "bore.example:2200", "targetPort": 80, "secret": "s"}},
        {"bore": {"address": "bore.example.org", "port": 2200, "targetPort": 80}},
        {"wireguard": {"privateKey": KEY, "address": ["10.1.0.1/24"], "peers": [
            {"publicKey": KEY, "preSharedKey": KEY, "allowedIPs": ["10.1.0.0/24"], "endpoint": "x.example:51820",
             "persistentKeepalive": 25},
        ]}},
    ],
}  # fmt: skip
WHOLE_JOB: dict[str, Any] = {
    "resources": RESOURCES,
    "env": [{"key": "N", "value": ""}],
    "enableLogging": True,
    "input": {"http": HTTP},
    "inputMode": 511,
    "output": {"s3": S3},
    "continuousOutputSync": True,
    "virtualNetworks": [{"name": "net", "gatewayAddress": "10.0.0.1/24"}],
    "steps": [
        {"name": "first", "if": "1 = 1", "run": RUN, "catch": [{"name": "c"}], "finally": [{"name": "f"}]},
        {"launch": {"handleName": "h", "signalOnParentStepExit": 9, "steps": [{"name": "l"}]}},
        {"dependsOn": ["h"], "for": {"parallel": False, "items": ["a"], "steps": [{"name": "i"}]}},
        {"for": {"parallel": True, "range": {"begin": 1, "end": 2, "increment": 1}, "steps": [{"name": "r"}]}},
        {"steps": [{"name": "group"}]},
        {"use": {"source": "host.example/a/b@v1", "args": [{"key": "A", "value": "b"}], "exportEnvAs": "E",
                 "steps": [{"name": "child"}]}},
    ],
}  # fmt: skip
GRID_FILES: dict[str, Any] = {  # one place at a time is an input
    **WHOLE_JOB, "input": {"grid": {"files": "0" * 32}}, "output": {"grid": {}},
}  # fmt: skip
OTHER_JOB: dict[str, Any] = {**WHOLE_JOB, "input": {"job": 12}}
WHOLE_MODULE: dict[str, Any] = {
    "name": "m",
    "description": "d",
    "minimumResources": RESOURCES,
    "inputs": [{"key": "A", "description": "d", "default": "x"}],
    "outputs": [{"key": "B", "description": "d"}],
    "steps": [{"name": "s"}],
}


def job_with(**changes: Any) -> dict[str, Any]:
    """Return a small job with these fields."""
    return {"resources": RESOURCES, "steps": [{"run": {"command": "echo hi"}}], **changes}


def run_with(**changes: Any) -> dict[str, Any]:
    """Return a small job whose one command has these fields."""
    return job_with(steps=[{"run": {"command": "echo hi", **changes}}])


async def post(grid: Grid, body: Any, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Send a body (as JSON, or bytes as they are) to the endpoint."""
    async with httpx.AsyncClient(timeout=60) as client:
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await client.post(grid.url + "/graphql", headers={**JSON, **(headers or {})}, **content)


async def ask(grid: Grid, query: str, **variables: Any) -> dict[str, Any]:
    """Return the answer to an operation that GraphQL itself accepts."""
    answer = await post(grid, {"query": query, "variables": variables})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
