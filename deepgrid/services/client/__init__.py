"""The client of the services, for customers, providers and the operator.

`ServicesClient` signs each request, and verifies each answer. `answers` parses them.
"""

from deepgrid.services.client.answers import LogChunk
from deepgrid.services.client.files_client import FilesClient
from deepgrid.services.client.services_client import ServicesClient

__all__ = ["FilesClient", "LogChunk", "ServicesClient"]
