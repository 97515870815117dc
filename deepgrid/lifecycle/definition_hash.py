"""The hash of a job definition, which the chain stores, and the sizes of what is hashed.

It is separate from the workflow language, which is slow to load.
"""

from __future__ import annotations

import hashlib

MAX_BYTES = 256 * 1024
SALT_BYTES = 32
_DOMAIN = b"deepgrid job definition v1\0"


def hash_definition(salt: bytes, content: bytes) -> str:
    """Return the `definition_hash` of a definition (on chain: `batchLocationHash`): 64 hex digits of SHA-256.

    The 32 random bytes of salt keep others from guessing a definition by its public hash.
    """
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    return hashlib.sha256(_DOMAIN + salt + content).hexdigest()
