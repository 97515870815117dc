"""What a job costs: rates, minutes, and how the locked credits are divided. Pure."""
