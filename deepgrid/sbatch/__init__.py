"""Renders a job definition to a batch script. Pure."""

from deepgrid.sbatch.containers import Containers
from deepgrid.sbatch.render import GUARD_MARK, ScriptParts, render, render_parts
from deepgrid.sbatch.storage import StoragePaths

__all__ = ["GUARD_MARK", "Containers", "ScriptParts", "StoragePaths", "render", "render_parts"]
