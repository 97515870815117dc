"""Backup and restore of the services: database and secret file, in one archive.

A restore checks the whole archive before it changes anything. It is whole or absent: no process serves half of one.
What was signed before the restore is refused after it (`deepgrid.services.fence`).
"""

from deepgrid.services.backup.backup_archive import Manifest
from deepgrid.services.backup.restore_backup import restore
from deepgrid.services.backup.write_backup import back_up

__all__ = ["Manifest", "back_up", "restore"]
