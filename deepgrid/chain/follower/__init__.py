"""Following the chain: which jobs changed, and a durable index of hot jobs."""
