"""What clusters earned over a period, and who used them. Pure: from the books' entries to figures, tables and files.

`capacity` says what clusters offered, `usage_figures` computes a period, `usage_tables` compares it with the one before.
`usage_page`, `usage_files` and `usage_plot` present the tables.
"""
