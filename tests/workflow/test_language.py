"""The rules of every field of the workflow language, by the sentences that their breach gets."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from deepgrid.workflow.faults import dotted, faults_of
from deepgrid.workflow.models import (
    ContainerRun,
    Definition,
    EnvVar,
    ForRange,
    Model,
    Module,
    NetworkInterface,
    Step,
    StepAsyncLaunch,
    StepFor,
    StepRun,
    StepUse,
    TransportData,
    VirtualNetwork,
)

JOB: dict[str, Any] = {"resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}, "steps": []}
S3: dict[str, Any] = {
    "region": "r", "bucketUrl": "s3://bucket", "path": "/in", "accessKeyId": "a", "secretAccessKey": "s",
    "endpointUrl": "https://s3.example.org",
}  # fmt: skip
KEY = "A" * 43 + "="  # has the form of a WireGuard key


def faults(model: type[Model], value: object) -> list[str]:
    """Every complaint as `path: sentence`; none means that the value is accepted."""
    try:
        model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return [f"{dotted(path)}: {what}" for path, what, _ in faults_of(error)]
    return []


ACCEPTED: list[tuple[type[Model], Any]] = [
    (ContainerRun, {"image": "image/test"}),
    (ContainerRun, {"image": "library/ubuntu:latest", "registry": "registry-1.docker.io"}),
    (ContainerRun, {"image": "/my.squashfs", "mounts": [{"hostDir": "/a", "containerDir": "/b", "options": "ro"}]}),
    (EnvVar, {"key": "test", "value": ""}),
    (StepAsyncLaunch, {"handleName": "a_B9", "steps": [{}]}),
    (StepAsyncLaunch, {"signalOnParentStepExit": 0, "steps": [{}]}),
    (StepRun, {"command": "", "resources": {}, "shell": "/bin/ash", "network": "host", "mpi": "pmix_v4"}),
    (StepRun, {"command": "x", "mapUid": 0, "mapGid": None, "disableCpuBinding": None, "env": None}),
    (StepRun, {"command": "x", "network": "pasta", "dns": ["1.1.1.1", "::1"]}),
    (ForRange, {"begin": 10, "end": -10, "increment": -5}),
    (ForRange, {"begin": 0, "end": 0}),
    (StepFor, {"parallel": False, "steps": []}),
    (TransportData, {}),
    (TransportData, {"http": {"url": "https://example.org/a.zip?token=a%20b"}}),
    (TransportData, {"s3": S3}),
    (NetworkInterface, {"bore": {"address": "bore.example.org", "port": 2200, "targetPort": 22}}),
    (NetworkInterface, {"bore": {"boreAddress": "bore:2200", "targetPort": 22}}),
    (NetworkInterface, {"wireguard": {"privateKey": KEY, "address": ["10.0.0.2/32"], "peers": [
        {"publicKey": KEY, "preSharedKey": KEY, "allowedIPs": ["0.0.0.0/0"], "endpoint": "[::1]:51820",
         "persistentKeepalive": 25}]}}),
    (VirtualNetwork, {"name": "any name", "gatewayAddress": "10.0.0.1/24"}),
    (StepUse, {"source": "example.org/a/b@v1", "exportEnvAs": "A_B", "args": [{"key": "a", "value": "b"}]}),
    (Module, {"name": "n", "description": "d", "minimumResources": JOB["resources"], "steps": [{}],
              "inputs": [{"key": "A", "description": "d"}], "outputs": [{"key": "B", "description": "d"}]}),
    (Definition, {**JOB, "inputMode": 511}),
    (Definition, {**JOB, "inputMode": 0, "input": None}),
]  # fmt: skip

REFUSED: list[tuple[type[Model], Any, str]] = [
    (ContainerRun, {"image": "registry#image/test"}, "image: must be a name in lower case"),
    (ContainerRun, {"image": "Image"}, "image: must be a name in lower case"),
    (ContainerRun, {"image": "a:b/c"}, "image: must be a name in lower case"),
    (ContainerRun, {"image": "a:b$"}, "image: must be a name in lower case"),
    (ContainerRun, {"image": ""}, "image: must be a name in lower case"),
    (ContainerRun, {"image": "a", "registry": "reg:5000"}, "registry: must be a host name"),
    (ContainerRun, {"image": "a", "registry": "re_g"}, "registry: must be a host name"),
    (ContainerRun, {"image": "a", "registry": ""}, "registry: must be a host name"),
    (ContainerRun, {"image": "/a", "deepsquareHosted": True}, "the job: is deepsquareHosted"),
    (ContainerRun, {"image": "a", "mounts": [None]}, "mounts[0]: must be a mapping"),
    (ContainerRun, {"image": "a", "mounts": [{"hostDir": "a", "containerDir": "/b"}]}, "mounts[0].hostDir: must start"),
    (ContainerRun, {"image": "a", "mounts": [{"hostDir": "/a", "containerDir": "b"}]}, "containerDir: must start"),
    (ContainerRun, {"image": "a", "mounts": [{"hostDir": "/a", "containerDir": "/b", "options": "xx"}]},
     "mounts[0].options: 'xx' is not one of rw, ro"),
    (StepRun, {"command": "x", "shell": "/bin/zsh"}, "shell: '/bin/zsh' is not one of"),
    (StepRun, {"command": "x", "shell": "ENTRYPOINT"}, "needs a container"),
    (StepRun, {"command": "x", "network": "bridge"}, "network: 'bridge' is not one of host, slirp4netns, pasta"),
    (StepRun, {"command": "x", "network": "slirp4nets"}, "(did you mean slirp4netns?)"),
    (StepRun, {"command": "x", "mpi": "openmpi"}, "mpi: 'openmpi' is not one of none, pmix_v4, pmi2"),
    (StepRun, {"command": "x", "network": "pasta", "dns": ["not-an-ip"]}, "dns[0]: must be an IP address"),
    (StepRun, {"command": "x", "dns": ["1.1.1.1"]}, "has dns, which needs network: slirp4netns or pasta"),
    (StepRun, {"command": "x", "workDir": "rel"}, "workDir: must start with '/'"),
    (StepRun, {"command": "x", "mapUid": -1}, "mapUid: must be at least 0"),
    (StepRun, {"command": "x", "env": [{"key": "A B", "value": ""}]}, "env[0].key: must be letters"),
    (StepRun, {"command": 5}, "command: must be text; put it in quotes"),
    (TransportData, {"http": {"url": "x"}}, "http.url: must be an address that starts with http:// or https://"),
    (TransportData, {"http": {"url": "http://h/a b"}}, "http.url: must be an address"),
    (TransportData, {"http": {"url": 'http://h/"'}}, "http.url: must be an address"),
    (TransportData, {"http": {"url": "http://h:99999/"}}, "http.url: must be an address"),
    (TransportData, {"s3": {**S3, "bucketUrl": "https://x"}}, "s3.bucketUrl: must be an address that starts with s3"),
    (TransportData, {"s3": {**S3, "bucketUrl": "s3://x/"}}, "s3.bucketUrl: must not end with '/'"),
    (TransportData, {"s3": {**S3, "bucketUrl": "x"}}, "s3.bucketUrl: must be an address"),
    (TransportData, {"s3": {**S3, "path": "x"}}, "s3.path: must start with '/'"),
    (TransportData, {"s3": {**S3, "endpointUrl": "x"}}, "s3.endpointUrl: must be an address"),
    (TransportData, {"s3": S3, "http": {"url": "http://h/"}}, "has both http and s3"),
    (Definition, {**JOB, "inputMode": 512}, "inputMode: must be at most 511"),
    (Definition, {**JOB, "inputMode": -1}, "inputMode: must be at least 0"),
    (Definition, {"steps": []}, "resources: is required"),
    (Definition, {**JOB, "env": [None]}, "env[0]: must be a mapping"),
    (Definition, {**JOB, "steps": [None]}, "steps[0]: must be a mapping"),
    (Definition, {**JOB, "steps": None}, "steps: must be a list"),
    (StepAsyncLaunch, {"handleName": "a-b", "steps": [{}]}, "handleName: must be letters, digits and '_'"),
    (StepAsyncLaunch, {"handleName": "a\n", "steps": [{}]}, "handleName: must be letters, digits and '_'"),
    (StepAsyncLaunch, {"signalOnParentStepExit": 19, "steps": []}, "is not one of 0, 1, 2, 3, 9"),
    (StepFor, {"parallel": True, "items": ["a"], "range": {"begin": 1, "end": 2}, "steps": []}, "both items and range"),
    (StepFor, {"items": [], "steps": []}, "parallel: is required"),
    (Step, {"run": {"command": "x"}, "launch": {"steps": []}}, "has run and launch; a step has at most one of steps"),
    (Step, {"steps": [{}], "use": {"source": "a"}}, "has steps and use"),
    (Step, {"dependsOn": ["a-b"]}, "dependsOn[0]: must be letters"),
    (StepUse, {"source": "a", "exportEnvAs": "A-B"}, "exportEnvAs: must be letters"),
    (StepUse, {"source": "a", "args": [{"key": "PATH", "value": ""}]}, "args[0].key: PATH and LD_LIBRARY_PATH cannot"),
    (VirtualNetwork, {"name": "a", "gatewayAddress": "10.0.0.1"}, "gatewayAddress: must be an address with a prefix"),
    (NetworkInterface, {}, "must be exactly one of wireguard, vnet, bore"),
    (NetworkInterface, {"wireguard": {"privateKey": KEY[:-1] + "\n"}}, "privateKey: must be a WireGuard key"),
    (NetworkInterface, {"wireguard": {"privateKey": KEY, "peers": [{"publicKey": KEY + "\nPostUp = x"}]}}, "publicKey"),
    (NetworkInterface, {"wireguard": {"privateKey": KEY, "address": ["::1%a\nPostUp = x/64"]}}, "address[0]: must be"),
    (StepRun, {"command": "x", "network": "pasta", "dns": ["fe80::1%$(x)"]}, "dns[0]: must be an IP address"),
    (NetworkInterface, {"bore": {"boreAddress": "h:0", "targetPort": 1}}, "boreAddress: must be host:port"),
    (NetworkInterface, {"bore": {"targetPort": 1}}, "bore: needs boreAddress"),
    (NetworkInterface, {"bore": {"boreAddress": "h:1", "address": "h.org", "port": 1, "targetPort": 1}}, "keep bore"),
    (Module, {"name": "n", "description": "d", "steps": []}, "minimumResources: is required"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "value"), ACCEPTED, ids=lambda part: str(part)[:60])
def test_what_the_language_allows_is_accepted(model: type[Model], value: Any) -> None:
    found = faults(model, value)
    assert found == []


@pytest.mark.parametrize(("model", "value", "sentence"), REFUSED, ids=lambda part: str(part)[:60])
def test_what_it_forbids_is_refused_with_a_sentence(model: type[Model], value: Any, sentence: str) -> None:
    (fault,) = faults(model, value)
    assert sentence in fault


def test_ranges_include_both_ends() -> None:
    assert list(ForRange(begin=0, end=10, increment=5).numbers) == [0, 5, 10]
    assert list(ForRange(begin=0, end=2, increment=0).numbers) == [0, 1, 2]
    assert list(ForRange(begin=2, end=0, increment=-2).numbers) == [2, 0]
    assert list(ForRange(begin=2, end=0).numbers) == []


def misplaced(*steps: dict[str, Any], **more: Any) -> list[str]:
    return faults(Definition, {**JOB, **more, "steps": steps})


def launch(name: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"launch": {"handleName": name, "steps": steps}}


def wait(*names: str, **more: Any) -> dict[str, Any]:
    return {"dependsOn": names, **more}


def test_a_step_waits_for_earlier_launches_of_its_scope() -> None:
    assert misplaced(launch("a"), wait("A"), launch("b"), wait("a", "b")) == []
    assert misplaced({"steps": [launch("a")]}, wait("a")) == []
    assert misplaced({"for": {"parallel": False, "items": ["x"], "steps": [launch("a")]}}, wait("a")) == []
    assert misplaced(launch("a"), wait("a", run={"command": "x"}, catch=[{}])) == []
    assert misplaced(launch("a", launch("b"), wait("b"))) == []


ELSEWHERE = "can only wait for launches before this step in the same scope; a is later or in another scope"


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ([wait("a"), launch("a")], f"steps[0].dependsOn[0]: {ELSEWHERE}"),
        ([launch("a", wait("b")), launch("b", wait("a"))],
         "steps[0].launch.steps[0].dependsOn[0]: can only wait for launches before this step in the same scope; "
         "b is later or in another scope"),
        ([launch("a", launch("b", wait("a")))],
         "steps[0].launch.steps[0].launch.steps[0].dependsOn[0]: would wait for a, of which this step is a part"),
        ([launch("a"), wait("b")], "steps[1].dependsOn[0]: no step launches b"),
        ([launch("server"), wait("sever")], "no step launches sever (did you mean server?)"),
        ([launch("a"), {"steps": [wait("a")], "catch": [{}]}], f"steps[1].steps[0].dependsOn[0]: {ELSEWHERE}"),
        ([{"steps": [launch("a")], "finally": [wait("a")]}], f"steps[0].finally[0].dependsOn[0]: {ELSEWHERE}"),
        ([{"for": {"parallel": True, "items": ["x"], "steps": [launch("a")]}}, wait("a")], ELSEWHERE),
    ],
    ids=["later", "each other", "itself", "nobody", "near", "out of catch", "out of body", "out of parallel"],
)  # fmt: skip
def test_a_wait_that_cannot_end_is_refused(steps: list[dict[str, Any]], fault: str) -> None:
    assert any(fault in found for found in misplaced(*steps))


def apart(interface: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"run": {"command": "x", "network": "pasta", "customNetworkInterfaces": [interface], **more}}


def vnet(name: str, address: str) -> dict[str, Any]:
    return apart({"vnet": {"name": name, "address": address}}, mapUid=0)


def test_networks_are_named_once_and_known() -> None:
    network = {"name": "n", "gatewayAddress": "10.0.0.1/24"}
    assert misplaced(vnet("m", "10.0.0.2/24"), virtualNetworks=[network, network]) == [
        "virtualNetworks[1].name: is the name of another network already",
        "steps[0].run.customNetworkInterfaces[0].vnet.name: missing virtual network: "
        "virtualNetworks has no network of this name",
    ]
    assert misplaced(vnet("n", "10.0.0.2/24"), virtualNetworks=[network]) == []


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (apart({"wireguard": {"privateKey": KEY}}), "wireguard: needs mapUid: 0 of the run"),
        (apart({"wireguard": {"privateKey": KEY}}, mapUid=5), "wireguard: needs mapUid: 0 of the run"),
        (apart({"vnet": {"name": "n", "address": "10.0.0.2/24"}}), "vnet: needs mapUid: 0 of the run"),
        (apart({"vnet": {"name": "n", "address": "10.0.0.2/24"}}, mapUid=0, resources={"tasks": 2}), "tasks: 1, or"),
        (vnet("n", "10.0.0.1/24"), "vnet.address: is the address of the network's gateway"),
        (apart({"bore": {"boreAddress": "b:2200", "targetPort": 1}}), "bore.boreAddress: must be port 7835"),
        (apart({"bore": {"address": "b.org", "port": 2200, "targetPort": 1}}), "bore.port: must be port 7835"),
    ],
)
def test_an_interface_that_could_not_come_up_is_refused(step: dict[str, Any], fault: str) -> None:
    found = misplaced(step, virtualNetworks=[{"name": "n", "gatewayAddress": "10.0.0.1/24"}])
    assert fault in found[-1]


def test_a_virtual_network_has_a_bounded_number_of_addresses() -> None:
    steps = [vnet("n", f"10.0.{i}.2/16") for i in range(251)]
    network = {"name": "n", "gatewayAddress": "10.0.0.1/16"}
    faults = misplaced(*steps, virtualNetworks=[network])
    assert faults == ["virtualNetworks[0]: must not have more than 250 addresses of steps"]
    assert misplaced(*steps[1:], virtualNetworks=[network]) == []


def nested(levels: int) -> dict[str, Any]:
    return {"steps": [nested(levels - 1)] if levels > 1 else []}


def test_steps_are_bounded_in_all_and_in_depth() -> None:
    assert misplaced(nested(16)) == []
    assert "is nested deeper than 16 steps" in misplaced(nested(17))[0]
    assert misplaced(*[{"steps": [{}] * 99}] * 10) == []
    assert "more than 1000 steps in all" in misplaced({"steps": [{}] * 1000})[0]
    wide = {"for": {"parallel": True, "range": {"begin": 1, "end": 1001}, "steps": []}}
    assert misplaced(wide) == ["steps[0].for: must not start more than 1000 iterations at once"]


def test_thousands_of_faults_are_a_hundred_lines_and_a_count() -> None:
    found = faults(Definition, {**JOB, "env": [None] * 5000})
    assert len(found) == 101
    assert found[-1] == "the job: has 4900 more faults"
