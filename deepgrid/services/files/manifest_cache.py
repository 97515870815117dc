"""Manifests in memory, least recently used ones deleted first. A manifest is parsed in a thread, and once for all that
ask for it at the same time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from deepgrid.services.files.manifest import MAX_MANIFEST_BYTES, Manifest

MOST_BYTES = 2 * MAX_MANIFEST_BYTES
OWN_BYTES = 4096  # overhead per manifest, so that the number of small ones is limited, too
PARSED_AT_ONCE = 2

Key = tuple[str, str]


class ManifestCache:
    """Manifests by the bundle and the digest."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, Manifest] = OrderedDict()
        self._bytes = 0
        self._readers: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._parsing = asyncio.Semaphore(PARSED_AT_ONCE)

    async def get(self, key: Key, read: Callable[[], Awaitable[bytes]]) -> Manifest:
        """Return a manifest. `read` returns the stored form of a manifest that is not in the cache."""
        lock = self._readers.setdefault(key, asyncio.Lock())
        async with lock:
            if (found := self._known.pop(key, None)) is None:
                packed = await read()
                async with self._parsing:
                    found = await asyncio.to_thread(Manifest.unpack, packed)
                self._bytes += _size_of(found)
            self._known[key] = found
            while self._bytes > MOST_BYTES and len(self._known) > 1:
                self._bytes -= _size_of(self._known.popitem(last=False)[1])
        return found


def _size_of(manifest: Manifest) -> int:
    return len(manifest.text) + OWN_BYTES
