"""Parameter sweeps: `map` requests one job per parameter set, a limited number at a time.

A plan turns parameter sets into orders whose hashes follow from the sweep's key. The sweep looks on chain for those
that exist, requests the others as places become free, and waits for the ends. `job_history` reads
the jobs and sweeps of the past.
"""
