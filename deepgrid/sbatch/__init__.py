"""Job definition to batch script."""

from deepgrid.sbatch.containers import Containers
from deepgrid.sbatch.render import GUARD_MARK, render
from deepgrid.sbatch.storage import StoragePaths

__all__ = ["GUARD_MARK", "Containers", "StoragePaths", "render"]
