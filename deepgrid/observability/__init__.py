"""What the roles report: metrics, liveness of a supervisor, and actions of maintenance flows."""
