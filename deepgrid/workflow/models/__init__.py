"""All models of the workflow language.

A definition that was made from these models holds the rules of each field (`fields`) and those between its parts
(`rules`).
"""

from deepgrid.workflow.models.base import EnvVar, Model
from deepgrid.workflow.models.fields import SHELL_NAMES
from deepgrid.workflow.models.job import Definition, Module, ModuleInput, ModuleOutput
from deepgrid.workflow.models.network import Bore, NetworkInterface, VirtualNetwork, VNet, Wireguard, WireguardPeer
from deepgrid.workflow.models.running import ContainerRun, JobResources, Mount, StepRun, StepRunResources
from deepgrid.workflow.models.steps import ForRange, Step, StepAsyncLaunch, StepFor, StepModule, StepUse
from deepgrid.workflow.models.transport import GridData, HTTPData, PrivateFiles, S3Data, SealedKey, TransportData

__all__ = [
    "SHELL_NAMES",
    "Bore",
    "ContainerRun",
    "Definition",
    "EnvVar",
    "ForRange",
    "GridData",
    "HTTPData",
    "JobResources",
    "Model",
    "Module",
    "ModuleInput",
    "ModuleOutput",
    "Mount",
    "NetworkInterface",
    "PrivateFiles",
    "S3Data",
    "SealedKey",
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
]
