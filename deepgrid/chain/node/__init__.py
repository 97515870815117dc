"""Access to a node of the chain: JSON-RPC, ABI encoding, and the contracts' structs as our own types.

Every failure of a node is a ChainError, transient if a retry may help.
"""
