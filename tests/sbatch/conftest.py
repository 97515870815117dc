"""Fixtures that several suites of scripts use."""

from tests.sbatch.bucket import bucket, s3_server

__all__ = ["bucket", "s3_server"]
