"""Idempotency keys: the same key with the same definition finds the same job, from any machine with that wallet.

The salt of the definition's hash is an HMAC of the key's text, and the hash is on chain. So the chain itself is the
record of what was requested. Files beside the key file only keep processes of one machine from requesting at the same
time, and tell when a key is used again with another definition. They hold no definition and no key text.
"""

from deepgrid.client.idempotency.idempotency_key import IdempotencyKey, random_key
from deepgrid.client.idempotency.journal import Journal
from deepgrid.client.idempotency.key_lock import KeyLock
from deepgrid.client.idempotency.requested import RequestedJobs

__all__ = ["IdempotencyKey", "Journal", "KeyLock", "RequestedJobs", "random_key"]
