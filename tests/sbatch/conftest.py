"""Fixtures that several suites of scripts use."""

from tests.sbatch.bucket import bucket, s3_server
from tests.sbatch.store import store
from tests.slurm.conftest import box, cluster, key, login, monitor, state_folder

__all__ = ["box", "bucket", "cluster", "key", "login", "monitor", "s3_server", "state_folder", "store"]
