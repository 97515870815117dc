"""Decisions of the meta-scheduler, as pure functions.

`scheduler` decides on the pending jobs of a round. It serves them in the order of `fairness`, on the clusters that
`candidates` finds, and `placement` chooses by `score` where there is room (`occupancy`). `waiting` tells the others
why. `market` has the values that go in and come out. `tables` holds jobs x clusters as arrays.

`fit` compares a job with one cluster, `explain` with all of them, `quote` gives prices. `expiry` takes jobs back,
`top_ups` buys time, `proposals` judges changes of providers. These need no numpy.
"""
