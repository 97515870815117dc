"""Rates, bills and the reconciliation of books. Pure.

`formulas` computes bills as the contract does, `credits` converts amounts. `reconcile` joins the chain's entries with
Slurm's runs (`entries`) in the room `columns`, and names the differences by the room `rules`. `report` and `plot` show
them. The room `usage` says what clusters earned, and who used them.
"""
