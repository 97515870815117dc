"""Decisions of the meta-scheduler, as pure functions.

`rounds` decides on the pending jobs of a round. `market` has the values that go in and come out, `occupancy` says
where there is room, `speed` how fast a cluster is. `tables` holds jobs x clusters as arrays.

`fit` compares a job with one cluster, `explain` with all of them, with prices. `expiry` takes jobs back,
`top_ups` buys time, `proposals` judges changes of providers. These need no numpy.
"""
