"""The meaning of Slurm's answers. Pure: text in, values out.

`snapshot` joins queue and spool of one moment, `run_records` separates runs from refused starts, `holdings` maps jobs
to claims, and `verdict` decides the state of a claim. The text itself is parsed by `deepgrid.slurm.commands`.
"""
