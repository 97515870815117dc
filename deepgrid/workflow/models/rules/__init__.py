"""Rules between the parts of a job definition, and the walk over its parts that they share."""

from deepgrid.workflow.models.rules.definition_rules import (
    MOST_NESTED,
    MOST_STEPS,
    faults_in,
    faults_in_steps,
    level,
)

__all__ = ["MOST_NESTED", "MOST_STEPS", "faults_in", "faults_in_steps", "level"]
