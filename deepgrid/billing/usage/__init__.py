"""What clusters earned over a period, and who used them. Pure: from the books' entries to figures, tables and files.

`capacity` says what clusters offered, and `offer_versions` when. `usage_figures` computes a period, and `usage_tables`
compares it with the one before. `usage_page`, `usage_files` and `usage_plot` present the tables.
"""
