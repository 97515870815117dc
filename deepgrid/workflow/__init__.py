"""Job definitions: the workflow language, its files, and the canonical form that is stored and hashed. Pure.

`models` is the language. `loading` reads files, from `yaml_nodes`; `faults` puts what is wrong into sentences.
`canonical` is what is stored and hashed, `schema` serves editors, `parameters` makes sweeps.
"""

from deepgrid.workflow.canonical import canonical, from_canonical, hash_definition, verify_resources
from deepgrid.workflow.loading import LoadedWorkflow, load, parse
from deepgrid.workflow.models import Definition, EnvVar, JobResources, Step, StepRun, StepRunResources
from deepgrid.workflow.parameters import pack, with_variables, without_texts

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
    "hash_definition",
    "load",
    "pack",
    "parse",
    "verify_resources",
    "with_variables",
    "without_texts",
]
