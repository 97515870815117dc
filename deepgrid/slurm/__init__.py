"""A Slurm cluster over SSH. Start with `deepgrid.slurm.cluster.Cluster`.

`ssh` is the transport, `observe` interprets Slurm's answers, `submit` starts and ends jobs. `supervision` watches jobs,
`setup` prepares and checks a cluster, and `remote` holds the scripts that run on the login node.
"""
