"""The flows of the grid: one per file. A flow calls tasks and has no I/O of its own."""
