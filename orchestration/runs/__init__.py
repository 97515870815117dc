"""Flow runs at Prefect: started, created in bulk, retried until they begin, taken over from a lost process, deleted."""
