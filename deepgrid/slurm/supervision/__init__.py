"""What a supervisor keeps doing on a cluster: leadership, polling, verdicts on claims, accounting."""
