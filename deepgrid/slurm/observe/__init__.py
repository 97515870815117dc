"""What Slurm's answers mean. Pure: text in, values out.

`commands` builds argument lists and parses outputs. `snapshot` joins queue and spool of one moment, `runs` separates
runs from refused starts, `holdings` maps jobs to claims, and `verdict` decides the state of a claim.
"""
