"""The one-machine grid: the whole grid on one machine, with real components.

`grid` has the steps of `./run up` and their order. `daemons` starts and ends processes, `node` is the chain, `slurm`
the clusters, `parties` the roles with their keys and deployments. `view` shows it, and `conf` has the
templates of configuration files.
"""
