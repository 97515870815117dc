"""Paths of a provider's storage volumes for jobs."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class StoragePaths:
    """Roots of the storage volumes, absolute paths on every node.

    The provider creates them, writable for all job accounts (mode 1777). A job creates its own folders
    below, private to its account. `job`, `user_tmp` and `world_tmp` are shared between nodes; the two
    `disk` roots are local to each node.
    """

    job: str = "/opt/cache/shared"
    user_tmp: str = "/opt/cache/persistent"
    world_tmp: str = "/opt/cache/world-tmp"
    disk_tmp: str = "/opt/cache/disk/tmp"
    disk_world_tmp: str = "/opt/cache/disk/world-tmp"

    def __post_init__(self) -> None:
        for name in self.__slots__:
            path = getattr(self, name)
            if not path.startswith("/") or "\0" in path:
                raise ConfigurationError(f"The storage root {name} must be an absolute path, not {path!r}.")

    @classmethod
    def under(cls, root: str) -> StoragePaths:
        """Return all volumes below one folder, as on the one-machine grid."""
        return cls(f"{root}/shared", f"{root}/persistent", f"{root}/world-tmp", f"{root}/disk", f"{root}/disk-world")

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the provider must create."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @property
    def of_account(self) -> tuple[str, ...]:
        """The folders that last longer than a job, without the number of their account at the end."""
        return f"{self.job}/", f"{self.user_tmp}/user-", f"{self.disk_tmp}/user-"
