"""The steps of the operator: it assigns pending jobs, approves providers, and takes overdue jobs back."""
