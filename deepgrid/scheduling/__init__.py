"""Decisions of the meta-scheduler, as pure functions.

`match` assigns jobs to clusters and gives each waiting job a reason. `fit` compares a job with one
cluster, `quote` gives prices. `expiry` takes jobs back, `top_ups` buys time, `proposals` judges changes
of providers.
"""
