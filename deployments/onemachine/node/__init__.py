"""The grid's own chain: anvil, its miner, the filter of its methods, and the contracts that it starts with."""
