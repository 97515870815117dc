"""Job definitions: the workflow language, its files, and the form that is stored and hashed."""

from deepgrid.workflow.agreement import verify_resources
from deepgrid.workflow.canonical import canonical, from_canonical, location_hash
from deepgrid.workflow.loading import LoadedWorkflow, load, parse
from deepgrid.workflow.models import Definition, EnvVar, JobResources, Step, StepRun, StepRunResources

__all__ = [
    "Definition",
    "EnvVar",
    "JobResources",
    "LoadedWorkflow",
    "Step",
    "StepRun",
    "StepRunResources",
    "canonical",
    "from_canonical",
    "load",
    "location_hash",
    "parse",
    "verify_resources",
]
