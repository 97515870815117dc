"""The entries of the books as columns, and their join: one row per claim. Exact to the wei."""
