"""Rates, bills and the reconciliation of books. Pure.

`formulas` computes bills as the contract does, `credits` converts amounts. `reconcile` joins the chain's entries with
Slurm's runs (`entries`) using the package `columns`, and names the differences using the package `rules`. `report` and
`plot` show them. The package `usage` says what clusters earned, and who used them.
"""
