"""Home of the contracts: sources, Forge tests, and what those write for the Python tests."""
