"""The rules of every field of the workflow language, and the sentence for each breach."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from deepgrid.workflow.faults import dotted, faults_of
from deepgrid.workflow.models import (
    Bore,
    Definition,
    ForRange,
    Model,
)
from tests.workflow.support import ACCEPTED, JOB, KEY, REFUSED


def faults(model: type[Model], value: object) -> list[str]:
    """Return every fault as `path: sentence`; none if the value is accepted."""
    try:
        model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return [f"{dotted(path)}: {what}" for path, what, _ in faults_of(error)]
    return []


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
         "steps[0].launch.steps[0].launch.steps[0].dependsOn[0]: would wait for a, which contains this step"),
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


@pytest.mark.parametrize(
    ("bore", "server"),
    [
        ({"boreAddress": "bore.example.org:2200"}, "bore.example.org:2200"),
        ({"boreAddress": "[2001:db8::1]:65535", "secret": "s"}, "[2001:db8::1]:65535"),
        ({"address": "bore.example.org", "port": 1}, "bore.example.org:1"),
        ({"address": "2001:db8::1", "port": 2200}, "[2001:db8::1]:2200"),
    ],
)
def test_a_bore_server_may_have_any_port_in_either_form(bore: dict[str, Any], server: str) -> None:
    whole = {**bore, "targetPort": 22}
    assert misplaced(apart({"bore": whole})) == []
    assert Bore.model_validate(whole, by_alias=True).server == server
