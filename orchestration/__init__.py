"""How Prefect runs our flows: the in-process worker with its engine, retry policy, sessions, outages, automations,
events and traces. `runs` starts, takes over and deletes flow runs.
"""
