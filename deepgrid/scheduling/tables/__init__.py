"""Tables of jobs x clusters as numpy arrays, with the same results as the plain functions.

`fits` is `fit.misfit` for all clusters at once, `conditions` is `fit.unmet`, `prices` is the formula of the rate,
`starts` is `occupancy`. A row is computed when a job first needs it, and kept while jobs of later rounds do.
"""
