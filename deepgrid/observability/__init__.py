"""What the roles tell: metrics, liveness of a supervisor, and actions of maintenance flows."""
