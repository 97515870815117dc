"""A round of the meta-scheduler: pending jobs x clusters -> assignments, and a reason for each job that waits.

`scheduler` serves the jobs in the order of `fairness`, on the clusters that `candidates` finds. `placement` chooses by
`score` where there is room. `waiting` explains why the others wait, in the words of `reasons`.
"""
