"""What clusters earned over a period, and who used them. Pure: from the books' entries to figures, tables and files.

`capacity` says what clusters offered, and `offer_versions` when. `job_uses` has the jobs of a period, `usage_figures`
its sums. `usage_tables` compares it with the period before. `usage_page`, `usage_files` and `usage_plot` present the
tables.
"""
