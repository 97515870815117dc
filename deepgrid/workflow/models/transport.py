"""Sources of a job's input and destinations of its output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import (
    EMPTY_LIST,
    SECRET,
    AbsolutePath,
    Account,
    Bucket,
    BundleId,
    Flag,
    HexText,
    JobNumber,
    Text,
    WebAddress,
)
from deepgrid.workflow.yaml_nodes import Path


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


class GridData(Model):
    """Files that the grid keeps, for as long as its operator says."""

    files: BundleId | None = None
    """As input: files that were sent to the grid. `dps submit --send` writes this number."""


class TransportData(Model):
    """One way to copy data in or out. Without any, nothing is copied."""

    http: HTTPData | None = None
    """Over HTTP."""
    s3: S3Data | None = None
    """With an S3 bucket."""
    grid: GridData | None = None
    """With the grid itself, which keeps the files for their customer."""
    job: JobNumber | None = None
    """As input: the output of another job of the same customer, by its number, if the grid keeps it."""

    @model_validator(mode="after")
    def _one_way(self) -> TransportData:
        ways = [name for name in ("http", "s3", "grid", "job") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise PydanticCustomError("one_of", "has both {ways}; keep one of them", {"ways": " and ".join(ways)})
        return self


def misplaced_files(target: TransportData | None) -> Iterator[tuple[Path, str]]:
    """Yield what only an input can name, in an output."""
    if target is not None and target.job is not None:
        yield ("output", "job"), "cannot be a target; write grid: {} to let the grid keep the output"
    if target is not None and target.grid is not None and target.grid.files is not None:
        yield ("output", "grid", "files"), "has a meaning for input only; write grid: {}"


class SealedKey(Model):
    """The key of private files, encrypted for one cluster."""

    cluster: Account
    """Address of the cluster's account."""
    key: HexText
    """The key, encrypted for the account's public key."""


class PrivateFiles(Model):
    """The key of encrypted files, for each party that can decrypt them. `dps submit --private` writes it."""

    own: HexText
    """The key, encrypted by the customer for itself."""
    clusters: Annotated[tuple[SealedKey, ...], EMPTY_LIST] = ()
    """The clusters that can decrypt the key."""


def misplaced_private_files(source: TransportData | None, target: TransportData | None) -> Iterator[tuple[Path, str]]:
    """Yield why files of a job with this input and output cannot be private."""
    nothing = TransportData()
    if source not in (None, nothing) and (source.grid is None or source.grid.files is None):
        yield ("privateFiles",), "needs an input of files that were sent with it, or none"
    if target is None or target.grid is None:
        yield ("privateFiles",), "needs output: grid: {}"
