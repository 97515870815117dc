"""The story of the grid: one flow a file, no I/O of its own."""
