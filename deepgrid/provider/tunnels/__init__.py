"""Sessions of customers in their running jobs: tunnels that the supervisor answers, and the agents in the jobs."""
