"""Sources of a job's input and destinations of its output."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import SECRET, AbsolutePath, Bucket, Flag, Text, WebAddress


class HTTPData(Model):
    """An HTTP address. As input: a file or archive to fetch and unpack. As output: receives a PUT."""

    url: WebAddress = Field(repr=False)
    """http:// or https:// address; may hold a secret, as presigned addresses do."""


class S3Data(Model):
    """A folder of an S3 bucket."""

    region: Text
    """Region of the bucket."""
    bucket_url: Bucket
    """s3://BUCKET, without '/' at its end."""
    path: AbsolutePath
    """Folder or prefix in the bucket. As input, everything with this prefix is copied."""
    access_key_id: Text = Field(repr=False)
    """Credentials: the key's id."""
    secret_access_key: Annotated[Text, SECRET] = Field(repr=False)
    """Credentials: the secret."""
    endpoint_url: WebAddress
    """Address of the S3 service."""
    delete_sync: Flag = False
    """As output: also delete objects of the bucket's folder that the job does not have."""


class TransportData(Model):
    """One way to copy data in or out. Without any, nothing is copied."""

    http: HTTPData | None = None
    """Over HTTP."""
    s3: S3Data | None = None
    """With an S3 bucket."""

    @model_validator(mode="after")
    def _one_way(self) -> TransportData:
        if self.http and self.s3:
            raise PydanticCustomError("one_of", "has both http and s3; keep one of them")
        return self
