"""Files between this machine and the grid: what a job gets as its input, and what it left as its output.

Both directions continue where they were interrupted, and check every file by its SHA-256. No name leaves the target
folder.
"""

from deepgrid.client.files.exchange import file_exchange
from deepgrid.client.files.local_files import LocalFiles, scan
from deepgrid.client.files.receiving import KeptFiles
from deepgrid.client.files.sending import send

__all__ = ["KeptFiles", "LocalFiles", "file_exchange", "scan", "send"]
