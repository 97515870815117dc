"""Flow runs in Prefect: started, created in bulk, retried, taken over from a lost process, and deleted."""
