"""Inputs become the jobs of workflow files. `null` means absent, and each broken rule is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml
from graphql import GraphQLInputObjectType, GraphQLList, GraphQLNonNull

from deepgrid.compat.graphql.job_input import FaultyInput, definition_from, module_from
from deepgrid.compat.graphql.operations import SCHEMA
from deepgrid.workflow import canonical, parse
from deepgrid.workflow.models import Model
from tests.compat.graphql.support import (
    GRID_FILES,
    HTTP,
    KEY,
    OTHER_JOB,
    S3,
    WHOLE_JOB,
    WHOLE_MODULE,
    job_with,
    run_with,
)

Place = tuple[str | int, ...]
ROOTS = (("Job", WHOLE_JOB), ("Job", GRID_FILES), ("Job", OTHER_JOB), ("Module", WHOLE_MODULE))


def test_a_job_is_the_same_as_from_a_workflow_file() -> None:
    of_file = parse(yaml.safe_dump(WHOLE_JOB | {"inputMode": "0777"}).replace("'0777'", "0777"), "job.yaml").model
    assert canonical(definition_from(WHOLE_JOB)) == canonical(of_file)


def test_the_example_has_every_field() -> None:
    """Otherwise the tests of `null` would miss some."""
    used = {(kind.name, name) for root, whole in ROOTS for kind, value in objects(root, whole) for name in value}
    known = {
        (kind.name, name)
        for kind in SCHEMA.type_map.values()
        if isinstance(kind, GraphQLInputObjectType)
        for name in kind.fields
    }
    assert known - used == set()


@pytest.mark.parametrize(("root", "whole"), ROOTS)
def test_null_in_each_optional_field_is_as_without_it(root: str, whole: dict[str, Any]) -> None:
    read: Callable[[Any], Model] = definition_from if root == "Job" else module_from
    checked = 0
    for place, name in optional(root, whole):
        with_null, without = deepcopy(whole), deepcopy(whole)
        at(with_null, place)[name] = None
        at(without, place).pop(name)
        assert outcome(read, with_null) == outcome(read, without), (*place, name)
        checked += 1
    assert checked > (50 if root == "Job" else 5)


def test_null_in_all_absent_fields_changes_nothing() -> None:
    padded = deepcopy(WHOLE_JOB)
    for kind, value in list(objects("Job", padded)):
        for name in kind.fields.keys() - value.keys():
            value[name] = None
    assert padded != WHOLE_JOB
    assert definition_from(padded) == definition_from(WHOLE_JOB)


def interface(**fields: Any) -> dict[str, Any]:
    return run_with(network="pasta", mapUid=0, customNetworkInterfaces=[fields])


def peer(**fields: Any) -> dict[str, Any]:
    return interface(wireguard={"privateKey": KEY, "peers": [{"publicKey": KEY, **fields}]})


def s3(**fields: Any) -> dict[str, Any]:
    return job_with(input={"s3": {**S3, **fields}})


INTERFACE = "Job.Steps[0].Run.CustomNetworkInterfaces[0]"
BROKEN: list[tuple[dict[str, Any], str, str]] = [
    (job_with(resources={"tasks": 0, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}), "Job.Resources.Tasks", "gte"),
    (job_with(resources={"tasks": 1, "cpusPerTask": 0, "memPerCpu": 1, "gpus": 0}), "Job.Resources.CPUsPerTask", "gte"),
    (job_with(resources={"tasks": 1, "cpusPerTask": 1, "memPerCpu": 0, "gpus": 0}), "Job.Resources.MemPerCPU", "gte"),
    (job_with(resources={"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": -1}), "Job.Resources.Gpus", "gte"),
    (job_with(inputMode=512), "Job.InputMode", "lte"),
    *((job_with(env=[{"key": key, "value": ""}]), "Job.Env[0].Key", "valid_envvar_name")
      for key in ("", "a b", "PATH", "LD_LIBRARY_PATH")),
    (job_with(input={"http": {"url": "x"}}), "Job.Input.HTTP.URL", "url"),
    (job_with(input={"http": HTTP, "s3": S3}), "Job.Input", "rule"),
    *((s3(bucketUrl=url), "Job.Input.S3.BucketURL", "url") for url in ("https://x", "s3://x/", "x")),
    (s3(path="x"), "Job.Input.S3.Path", "startswith"),
    (s3(endpointUrl="x"), "Job.Input.S3.EndpointURL", "url"),
    (job_with(virtualNetworks=[{"name": "n", "gatewayAddress": "10.0.0.1"}]),
     "Job.VirtualNetworks[0].GatewayAddress", "cidr"),
    (job_with(steps=[{"dependsOn": ["a-b"]}]), "Job.Steps[0].DependsOn[0]", "alphanum_underscore"),
    (job_with(steps=[{"run": {"command": "x", "shell": "/bin/zsh"}}]), "Job.Steps[0].Run.Shell", "oneof"),
    (run_with(network="bridge"), "Job.Steps[0].Run.Network", "oneof"),
    (run_with(mpi="openmpi"), "Job.Steps[0].Run.Mpi", "oneof"),
    (run_with(network="pasta", dns=["x"]), "Job.Steps[0].Run.DNS[0]", "ip"),
    (run_with(workDir="x"), "Job.Steps[0].Run.WorkDir", "startswith"),
    (run_with(resources={"tasks": 0}), "Job.Steps[0].Run.Resources.Tasks", "gte"),
    (run_with(resources={"gpusPerTask": -1}), "Job.Steps[0].Run.Resources.GpusPerTask", "gte"),
    (run_with(container={"image": "a#b"}), "Job.Steps[0].Run.Container.Image", "valid_container_image_url"),
    (run_with(container={"image": "a", "registry": "a:1"}), "Job.Steps[0].Run.Container.Registry", "hostname"),
    (run_with(container={"image": "a", "mounts": [{"hostDir": "a", "containerDir": "/b"}]}),
     "Job.Steps[0].Run.Container.Mounts[0].HostDir", "startswith"),
    (run_with(container={"image": "a", "mounts": [{"hostDir": "/a", "containerDir": "/b", "options": "xx"}]}),
     "Job.Steps[0].Run.Container.Mounts[0].Options", "oneof"),
    (interface(vnet={"name": "none", "address": "10.0.0.2/24"}), f"{INTERFACE}.Vnet.Name", "rule"),
    (interface(bore={"boreAddress": "x", "targetPort": 1}), f"{INTERFACE}.Bore.BoreAddress", "hostname_port"),
    (peer(allowedIPs=["10.0.0.1"]), f"{INTERFACE}.Wireguard.Peers[0].AllowedIPs[0]", "cidr"),
    (peer(endpoint="x"), f"{INTERFACE}.Wireguard.Peers[0].Endpoint", "hostname_port"),
    (job_with(steps=[{"launch": {"handleName": "a-b", "steps": []}}]),
     "Job.Steps[0].Launch.HandleName", "alphanum_underscore"),
    (job_with(steps=[{"use": {"source": "x", "exportEnvAs": "A-B"}}]),
     "Job.Steps[0].Use.ExportEnvAs", "valid_envvar_name"),
    (job_with(steps=[{"run": {"command": ""}, "steps": [{"name": "x"}]}]), "Job.Steps[0]", "rule"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "namespace", "tag"), BROKEN, ids=[f"{where} {tag}" for _, where, tag in BROKEN])
def test_a_broken_rule_is_named_with_its_place(given: dict[str, Any], namespace: str, tag: str) -> None:
    with pytest.raises(FaultyInput) as caught:
        definition_from(given)
    assert [(fault.namespace, fault.tag) for fault in caught.value.faults] == [(namespace, tag)]
    fault = caught.value.faults[0]
    assert ": " in fault.message
    extensions = fault.entry(["submit"])["extensions"]
    assert extensions["original_message"].startswith(f"Key: '{namespace}' Error:Field validation for '")
    assert "[" not in extensions["field"]


@pytest.mark.parametrize("port", [22, 2200, 7835, 65535])
def test_any_bore_server_is_accepted(port: int) -> None:
    given = interface(bore={"boreAddress": f"bore.example:{port}", "targetPort": 8080})
    run = definition_from(given).steps[0].run
    assert run
    assert run.custom_network_interfaces[0].bore


def test_more_faults_than_anybody_reads_are_counted() -> None:
    with pytest.raises(FaultyInput) as caught:
        definition_from(job_with(env=[{"key": "1", "value": ""}] * 150))
    assert len(caught.value.faults) == 101
    assert caught.value.faults[-1].message == "and 50 more faults"


def test_a_module_is_checked_like_a_module_file() -> None:
    module_from(WHOLE_MODULE)
    with pytest.raises(FaultyInput, match=r"inputs\[0\].key: must be letters"):
        module_from(WHOLE_MODULE | {"inputs": [{"key": "A-B"}]})
    with pytest.raises(FaultyInput, match="no step launches nobody"):
        module_from(WHOLE_MODULE | {"steps": [{"dependsOn": ["nobody"]}]})


def objects(
    root: str, value: dict[str, Any], place: Place = ()
) -> Iterator[tuple[GraphQLInputObjectType, dict[str, Any]]]:
    """Yield all objects of an input, with their types."""
    for kind, found, _ in placed(root, value, place):
        yield kind, found


def placed(root: str, value: Any, place: Place) -> Iterator[tuple[GraphQLInputObjectType, dict[str, Any], Place]]:
    kind = SCHEMA.type_map[root]
    assert isinstance(kind, GraphQLInputObjectType)
    yield kind, value, place
    for name, part in list(value.items()):
        inner: Any = kind.fields[name].type
        while isinstance(inner, GraphQLNonNull | GraphQLList):
            inner = inner.of_type
        if isinstance(part, dict):
            yield from placed(inner.name, part, (*place, name))
        elif isinstance(part, list) and part and isinstance(part[0], dict):
            for number, item in enumerate(part):
                yield from placed(inner.name, item, (*place, name, number))


def optional(root: str, value: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield the places of all optional fields that are set."""
    for kind, found, place in placed(root, value, ()):
        for name in found:
            if not isinstance(kind.fields[name].type, GraphQLNonNull):
                yield place, name


def at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def outcome(read: Callable[[Any], Model], given: Any) -> object:
    try:
        return read(given)
    except FaultyInput as error:
        return error.faults


def test_a_whole_job_has_no_faults() -> None:
    with pytest.raises(FaultyInput) as caught:
        definition_from(WHOLE_JOB | {"inputMode": -1})
    assert len(caught.value.faults) == 1, "the example used by the other tests is valid"
