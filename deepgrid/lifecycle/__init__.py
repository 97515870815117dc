"""The life of a job: its states, its values, and the decision about the next action. Pure.

`decide` maps chain state, Slurm state and time to an action. `drive` loops over it. `states` holds the
states and the legal edges, `job` the values from the chain, `slurm_state` those from Slurm.
"""
