"""The layer that runs our flows in Prefect: the in-process worker with its engine, retry policy, sessions, outages,
automations, events and traces. `runs` starts, takes over and deletes flow runs.
"""
