"""Job definition to batch script."""

from deepgrid.sbatch.check import MAX_SCRIPT_BYTES, check_script
from deepgrid.sbatch.render import GUARD_MARK, render
from deepgrid.sbatch.storage import StoragePaths

__all__ = ["GUARD_MARK", "MAX_SCRIPT_BYTES", "StoragePaths", "check_script", "render"]
