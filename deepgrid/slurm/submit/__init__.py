"""Side effects on a cluster, each at most once: submission, batch jobs, leftovers."""
