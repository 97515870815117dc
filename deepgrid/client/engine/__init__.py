"""The parts that jobs, job sets and the grid share: one connection, one poller of jobs, one reader of logs."""
