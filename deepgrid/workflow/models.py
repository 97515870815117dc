"""All models of the workflow language, and their bounds, for import from one module."""

from deepgrid.workflow.base import Env, EnvVar, Model, field_of, yaml_names
from deepgrid.workflow.container import ContainerRun, Mount
from deepgrid.workflow.fields import LIBRARY_NAMES, LONGEST_BYTES, OWN_PREFIX, SHELL_NAMES
from deepgrid.workflow.job import Definition
from deepgrid.workflow.modules import Module, ModuleInput, ModuleOutput
from deepgrid.workflow.network import Bore, NetworkInterface, VirtualNetwork, VNet, Wireguard, WireguardPeer
from deepgrid.workflow.rules import MOST_NESTED, MOST_STEPS
from deepgrid.workflow.running import JobResources, ResolvedResources, StepRun, StepRunResources
from deepgrid.workflow.steps import ForRange, Step, StepAsyncLaunch, StepFor, StepModule, StepUse
from deepgrid.workflow.transport import HTTPData, S3Data, TransportData

__all__ = [
    "LIBRARY_NAMES",
    "LONGEST_BYTES",
    "MOST_NESTED",
    "MOST_STEPS",
    "OWN_PREFIX",
    "SHELL_NAMES",
    "Bore",
    "ContainerRun",
    "Definition",
    "Env",
    "EnvVar",
    "ForRange",
    "HTTPData",
    "JobResources",
    "Model",
    "Module",
    "ModuleInput",
    "ModuleOutput",
    "Mount",
    "NetworkInterface",
    "ResolvedResources",
    "S3Data",
    "Step",
    "StepAsyncLaunch",
    "StepFor",
    "StepModule",
    "StepRun",
    "StepRunResources",
    "StepUse",
    "TransportData",
    "VNet",
    "VirtualNetwork",
    "Wireguard",
    "WireguardPeer",
    "field_of",
    "yaml_names",
]
