"""Access to a node of the chain: JSON-RPC, ABI encoding, and the structs of the contracts as our own values.

Every failure of a node is a ChainError, transient if a retry may help.
"""
