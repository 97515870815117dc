"""How Prefect runs our flows: the in-process worker, retry policy, sessions, outages, starting and pruning of runs,
automations, events and traces."""
