"""How Prefect runs our flows: the in-process worker, retry policy, sessions, outages, and starting of runs."""
