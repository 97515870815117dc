"""Where a job's input comes from and where its output goes."""

from __future__ import annotations

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.base import Model
from deepgrid.workflow.fields import AbsolutePath, Bucket, Flag, Text, WebAddress


class HTTPData(Model):
    """An address: as input a file or archive that is fetched and unpacked, as output what receives a PUT."""

    url: WebAddress = Field(repr=False)
    """http:// or https:// address; may hold a secret, as presigned addresses do."""


class S3Data(Model):
    """A folder of an S3 bucket."""

    region: Text
    """Region of the bucket."""
    bucket_url: Bucket
    """s3://BUCKET, without '/' at its end."""
    path: AbsolutePath
    """Folder or beginning of names in the bucket; as input all that begins with it is copied."""
    access_key_id: Text = Field(repr=False)
    """Credentials: the key's id."""
    secret_access_key: Text = Field(repr=False)
    """Credentials: the secret."""
    endpoint_url: WebAddress
    """Address of the S3 service."""
    delete_sync: Flag = False
    """As output: also delete what the bucket has there and the job has not."""


class TransportData(Model):
    """One way to bring data in or out; without any, nothing is moved."""

    http: HTTPData | None = None
    """Over HTTP."""
    s3: S3Data | None = None
    """With an S3 bucket."""

    @model_validator(mode="after")
    def _one_way(self) -> TransportData:
        if self.http and self.s3:
            raise PydanticCustomError("one_of", "has both http and s3; keep one of them")
        return self
