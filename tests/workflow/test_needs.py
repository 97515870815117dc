"""What a definition needs of a cluster follows from what it uses."""

from __future__ import annotations

import pytest

from deepgrid.scheduling.fit import condition_text
from deepgrid.workflow import parse
from deepgrid.workflow.needs import needs_of

S3 = "{region: r, bucketUrl: 's3://b', path: /p, accessKeyId: a, secretAccessKey: s, endpointUrl: 'https://s3.example'}"
KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
WIREGUARD = f"customNetworkInterfaces: [{{wireguard: {{privateKey: {KEY}}}}}]"
VNET = "customNetworkInterfaces: [{vnet: {name: n, address: 10.0.0.2/24}}]"
CASES = {
    "steps: [{run: {command: a}}]": [],
    "steps: [{run: {command: a, container: {image: ubuntu}}}]": ["containers!=none"],
    "steps: [{run: {command: a, container: {image: a, apptainer: true}}}]": ["containersinapptainer"],
    "steps: [{run: {command: a, container: {image: a, deepsquareHosted: true}}}]": ["containersinapptainer"],
    "steps: [{run: {command: a, container: {image: a}}}, {steps: [{run: {command: a, container: {image: /input/a.sif,"
    " apptainer: true}}}]}]": ["containersinapptainer"],
    "steps: [{for: {parallel: true, items: [a], steps: [{run: {command: a, container: {image: a}}}]}}]": [
        "containers!=none"
    ],
    "steps: [{run: {command: a}, catch: [{run: {command: a, network: slirp4netns}}]}]": ["network.slirp4netns==true"],
    "steps: [{run: {command: a, network: host}, finally: [{run: {command: a, network: pasta}}]}]": [
        "network.pasta==true"
    ],
    f"steps: [{{run: {{command: a, network: slirp4netns, mapUid: 0, {WIREGUARD}}}}}]": [
        "network.slirp4netns==true",
        "network.wireguard==true",
    ],
    "virtualNetworks: [{name: n, gatewayAddress: 10.0.0.1/24}]\n"
    f"steps: [{{run: {{command: a, network: pasta, mapUid: 0, {VNET}}}}}]": [
        "network.pasta==true",
        "network.wireguard==true",
    ],
    f"input: {{s3: {S3}}}\nsteps: []": ["storage.s3==true"],
    f"output: {{s3: {S3}}}\nsteps: [{{launch: {{steps: [{{run: {{command: a, container: {{image: a}}}}}}]}}}}]": [
        "containers!=none",
        "storage.s3==true",
    ],
    "input: {http: {url: 'https://a.example/b'}}\nsteps: []": [],
}


@pytest.mark.parametrize("text", CASES)
def test_needs_follow_from_the_definition(text: str) -> None:
    loaded = parse(f"resources: {{tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}}\n{text}\n", "job.yaml")
    assert [condition_text(need) for need in needs_of(loaded.model)] == CASES[text]
