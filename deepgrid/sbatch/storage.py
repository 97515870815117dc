"""Where a provider keeps the storage volumes of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class StoragePaths:
    """Roots of the storage volumes, absolute paths on every node.

    The provider makes them beforehand, writable for all job accounts (mode 1777). A job makes its
    own folders below, for its account alone. `job`, `user_tmp` and `world_tmp` are shared between
    nodes, the two `disk` roots are each node's own.
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
        """All volumes below one folder, as on a one-machine grid."""
        return cls(f"{root}/shared", f"{root}/persistent", f"{root}/world-tmp", f"{root}/disk", f"{root}/disk-world")

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the provider has to make."""
        return tuple(getattr(self, name) for name in self.__slots__)
