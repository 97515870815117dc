"""A node of the chain: JSON-RPC, ABI coding, the contracts' values, and what goes wrong."""
