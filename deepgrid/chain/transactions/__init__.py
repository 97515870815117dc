"""Transactions of one key: signed, numbered, sent, and followed until they are final."""
