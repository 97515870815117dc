"""A Slurm cluster over SSH. Start with `deepgrid.slurm.cluster.Cluster`.

`ssh` is the transport, `commands` builds and parses Slurm's commands, and `observe` says what the answers mean.
`submit` starts and ends jobs, `supervision` watches jobs, `setup` prepares and checks a cluster, and `remote` holds the
scripts that run on the login node.
"""
