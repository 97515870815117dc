"""The contracts and Python have the same states, bills and documentation."""
