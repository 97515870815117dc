"""Metrics and liveness of a supervisor, and the metrics of the chain that the operator has, too."""
