"""A whole grid under steady load for a long time, with restarts of each process."""
