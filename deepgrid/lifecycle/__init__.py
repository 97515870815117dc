"""States of a job, what a job is, and the pure decision of what to do next for it."""
