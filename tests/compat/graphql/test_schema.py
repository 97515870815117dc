"""The types of existing clients: every type and field has the same name, and comes from the current models."""

from __future__ import annotations

import pytest
from graphql import GraphQLInputObjectType, assert_valid_schema

from deepgrid.compat.graphql.operations import SCHEMA
from deepgrid.workflow import models
from tools.graphql_schema import FILE, NOT_WRITTEN_BY_HAND, schema

# The types that existing clients were generated from.
TYPES = """
Job: resources JobResources!, env [EnvVar!], enableLogging Boolean, input TransportData, inputMode Int, steps [Step!]!, output TransportData, continuousOutputSync Boolean, virtualNetworks [VirtualNetwork!]
JobResources: tasks Int!, cpusPerTask Int!, memPerCpu Int!, gpus Int!
EnvVar: key String!, value String!
TransportData: http HTTPData, s3 S3Data
HTTPData: url String!
S3Data: region String!, bucketUrl String!, path String!, accessKeyId String!, secretAccessKey String!, endpointUrl String!, deleteSync Boolean
VirtualNetwork: name String!, gatewayAddress String!
Step: name String, dependsOn [String!], if String, steps [Step!], run StepRun, for StepFor, launch StepAsyncLaunch, use StepUse, catch [Step!], finally [Step!]
StepRun: command String!, shell String, resources StepRunResources, container ContainerRun, network String, dns [String!], customNetworkInterfaces [NetworkInterface!], env [EnvVar!], mapUid Int, mapGid Int, workDir String, disableCpuBinding Boolean, mpi String
StepRunResources: tasks Int, cpusPerTask Int, memPerCpu Int, gpusPerTask Int
ContainerRun: image String!, mounts [Mount!], username String, password String, registry String, apptainer Boolean, deepsquareHosted Boolean, x11 Boolean, mountHome Boolean, readOnlyRootFS Boolean
Mount: hostDir String!, containerDir String!, options String
NetworkInterface: wireguard Wireguard, bore Bore, vnet VNet
Wireguard: address [String!], privateKey String!, peers [WireguardPeer!]
WireguardPeer: publicKey String!, preSharedKey String, allowedIPs [String!], endpoint String, persistentKeepalive Int
Bore: address String, boreAddress String, port Int, targetPort Int!, secret String
VNet: name String!, address String!
StepFor: parallel Boolean!, items [String!], range ForRange, steps [Step!]!
ForRange: begin Int!, end Int!, increment Int
StepAsyncLaunch: handleName String, signalOnParentStepExit Int, steps [Step!]!
StepUse: source String!, args [EnvVar!], exportEnvAs String, steps [Step!]
Module: name String!, description String!, minimumResources JobResources!, inputs [ModuleInput!], outputs [ModuleOutput!], steps [Step!]!
ModuleInput: key String!, description String!, default String
ModuleOutput: key String!, description String!
"""  # noqa: E501 - a row per type
# Since then; a client may leave them out.
ADDED = {"StepRun": {"killOnBadExit Boolean"}, "TransportData": {"grid GridData", "job Int"}}
ADDED_TYPES = {"GridData"}
ROWS = dict(line.split(": ", 1) for line in TYPES.strip().splitlines())


def fields_of(name: str) -> set[str]:
    kind = SCHEMA.type_map[name]
    assert isinstance(kind, GraphQLInputObjectType)
    return {f"{field} {given.type}" for field, given in kind.fields.items()}


def test_the_schema_is_valid_and_fresh() -> None:
    assert_valid_schema(SCHEMA)
    assert FILE.read_text() == schema(), "Run `.venv/bin/python -m tools.graphql_schema`"


@pytest.mark.parametrize("name", ROWS)
def test_each_type_has_the_fields_of_existing_clients(name: str) -> None:
    row = ROWS[name]
    if name.startswith("Module"):  # a description may be missing in our modules
        row = row.replace("description String!", "description String")
    assert fields_of(name) == set(row.split(", ")) | ADDED.get(name, set())


def test_there_are_no_other_types_and_no_model_is_left_out() -> None:
    inputs = {name for name, kind in SCHEMA.type_map.items() if isinstance(kind, GraphQLInputObjectType)}
    assert inputs == ROWS.keys() | ADDED_TYPES
    ours = {name for name in models.__all__ if issubclass(type(getattr(models, name)), type(models.Model))}
    not_in_files = {"Model", "ResolvedResources", *(model.__name__ for model in NOT_WRITTEN_BY_HAND)}
    assert {"Job" if name == "Definition" else name for name in ours - not_in_files} == inputs


def test_the_operations_are_those_of_existing_clients() -> None:
    assert SCHEMA.query_type is not None
    assert SCHEMA.mutation_type is not None
    found = {
        name: ({key: str(arg.type) for key, arg in field.args.items()}, str(field.type))
        for kind in (SCHEMA.query_type, SCHEMA.mutation_type)
        for name, field in kind.fields.items()
    }
    assert found == {
        "job": ({"batchLocationHash": "String!"}, "String!"),
        "submit": ({"job": "Job!"}, "String!"),
        "validate": ({"module": "Module!"}, "String!"),
    }
