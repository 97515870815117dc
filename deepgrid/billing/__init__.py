"""Rates, bills and the reconciliation of books. Pure.

`formulas` computes bills as the contract does, `credits` converts amounts. `reconcile` compares the
chain's entries with Slurm's runs (`entries`) and returns the differences; `report` and `plot` show them.
The room `usage` says what clusters earned, and who used them.
"""
