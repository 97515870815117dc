"""The supervisor: the process of one cluster."""
