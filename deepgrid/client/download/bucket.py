"""Lists the objects of a job's S3 output, and signs their addresses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deepgrid.client.download.fetch import RemoteFile
from deepgrid.client.errors import NoOutput
from deepgrid.errors import AccessDenied, ServiceError
from deepgrid.extras import needs
from deepgrid.secure_url import is_loopback

if TYPE_CHECKING:
    from deepgrid.workflow.models.transport import S3Data

SIGNED_FOR_S = 3600
REFUSED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403", "401", "AllAccessDisabled"})
TIMEOUT_S = 60
# The workflow says everything: profiles and files of this user do not count. Each value is a name in the configuration
# file, names in the environment, the default, and a conversion.
_OWN_VARIABLES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class OutputBucket:
    """The folder of a bucket to which a job's output went."""

    def __init__(self, data: S3Data) -> None:
        """Prepare a client. Raises ConfigurationError without the extra `s3`."""
        with needs("s3"):
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        self._bucket, _, above = data.bucket_url.removeprefix("s3://").partition("/")
        # As s5cmd names folders: the bucket's URL, the path, and one `/` at the end.
        self._folder = f"{above}{data.path.rstrip('/')}/".removeprefix("/")
        session = Session(session_vars=_OWN_VARIABLES)
        local = is_loopback(urlsplit(data.endpoint_url).hostname or "")
        config = Config(
            signature_version="s3v4", s3={"addressing_style": "path"}, connect_timeout=TIMEOUT_S,
            read_timeout=TIMEOUT_S, retries={"mode": "standard", "max_attempts": 4}, proxies={} if local else None,
        )  # fmt: skip
        try:
            self._client: Any = session.create_client(
                "s3", region_name=data.region, endpoint_url=data.endpoint_url, config=config,
                aws_access_key_id=data.access_key_id, aws_secret_access_key=data.secret_access_key,
                verify=os.environ.get("SSL_CERT_FILE"),
            )  # fmt: skip
        except (BotoCoreError, ValueError) as error:
            raise _no_bucket(error) from None

    def files(self) -> list[RemoteFile]:
        """The files of the folder, in the order of their keys.

        Raises:
            NoOutput: There is no such bucket.
            ServiceError: The storage does not answer, or refuses.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return list(self._listed())
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))[:40]
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        except (BotoCoreError, ValueError) as error:
            raise ServiceError(f"The storage of the job's output does not answer ({type(error).__name__}).") from None
        if code == "NoSuchBucket":
            raise NoOutput("The bucket of the job's output does not exist.", next_step="Create it before the job runs.")
        if code in REFUSED or status in (401, 403):
            raise AccessDenied(
                f"The storage of the job's output refuses access ({code}).",
                next_step="Check the credentials in the workflow.",
            )
        raise ServiceError(f"The storage of the job's output refuses to list it ({code}).", transient=status >= 500)

    def _listed(self) -> Iterator[RemoteFile]:
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=self._folder):
            for entry in page.get("Contents", ()):
                key: str = entry["Key"]
                name = key[len(self._folder) :]
                if name and not key.endswith("/"):  # names with a `/` at the end are marks for empty folders
                    modified_s = int(entry["LastModified"].timestamp())
                    yield RemoteFile(
                        name, int(entry["Size"]), entry["ETag"], modified_s, True, partial(self._signed, key)
                    )

    def _signed(self, key: str) -> str:
        where = {"Bucket": self._bucket, "Key": key}
        return str(self._client.generate_presigned_url("get_object", where, SIGNED_FOR_S))


def _no_bucket(error: Exception) -> NoOutput:
    return NoOutput(
        f"The workflow's S3 output cannot be used ({type(error).__name__}).",
        next_step="Correct its region and endpointUrl.",
    )
