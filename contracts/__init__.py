"""Home of the contracts: their compiled ABI and bytecode are read from `abi/` as package data."""
