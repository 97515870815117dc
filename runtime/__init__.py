"""How Prefect runs our flows: the in-process worker, retry policy, sessions, outages, starting of runs."""
