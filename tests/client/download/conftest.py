"""Fixtures of downloads: a bucket of a real S3 server, and a web server with faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.download.support import FileServer
from tests.sbatch.bucket import bucket as bucket
from tests.sbatch.bucket import s3_server as s3_server


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as running:
        yield running
