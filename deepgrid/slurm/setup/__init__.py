"""Setting up a cluster: the doctor's checks, guards, hooks and the self-test."""
